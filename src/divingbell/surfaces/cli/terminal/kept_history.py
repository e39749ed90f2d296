"""The history of a prompt in a file: what a person typed, without what is anybody's."""

from collections.abc import Iterable

from prompt_toolkit.history import FileHistory

from divingbell.border.privacy.blotter import BLOTTER, replaced
from divingbell.errors import ConfigError

MOST = 1 << 14
"""Characters of an input that is kept; a longer one was pasted, and is not."""


class KeptHistory(FileHistory):
    """Keeps input on the disk with the name of its kind in the place of each value.

    What was typed since the start comes back as it was: that is in memory alone.
    """

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed before. It is asked for once the prompt stands there."""
        BLOTTER.make()  # which takes most of a second, while nothing is typed yet
        return super().load_history_strings()

    def store_string(self, string: str) -> None:
        kept = without_values(string)
        if kept is not None:
            super().store_string(kept)


def without_values(text: str) -> str | None:
    """Return an input without the values in it; None where that can't be told."""
    from divingbell.border.privacy.fields import Fields
    from divingbell.border.privacy.learned import Learned
    from divingbell.border.privacy.learner import Learner
    from divingbell.border.privacy.named_values import in_code
    from divingbell.border.privacy.screen import Screen

    if len(text) > MOST:
        return None
    try:
        scanner, learned = BLOTTER.scanner(), Learned()
    except ConfigError:
        return None
    learner = Learner(Fields(), learned)
    for origin, value in in_code(text):
        learner.learn(value, origin)
    return replaced(text, Screen(scanner, learned).finds(text))
