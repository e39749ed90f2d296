"""Real values in the places of tokens, marked: for the person at the terminal, and nobody else."""

import re
from collections.abc import Awaitable, Callable

from divingbell.border.vault import tokens
from divingbell.errors import DivingbellError
from divingbell.escapes import one_line

OPEN, CLOSE = "‹", "›"
MOST_SHOWN = 200
"""Characters of one value."""
_HEAD, _TAIL = "\ue000", "\ue001"
"""Stand for the marks until a text is laid out. Text of others can't have them: it is written out
in such text what can't be seen."""
_COLOURED = f"\x1b[36m{OPEN}", f"{CLOSE}\x1b[39m"
_BESIDE = re.compile(f"(?<=[ │┆|]) (?={_HEAD})|(?<={_TAIL}) (?=[ │┆|])")
"""Blanks that are there to keep columns apart: the marks take their places."""
_MAY_GO_ON = re.compile(r"\[[A-Z0-9_]{0,40}$")

Reveal = Callable[[str], Awaitable[str]]


class Revealer:
    """Knows what tokens stand for, once it was asked about them."""

    def __init__(self, reveal: Reveal | None, colours: bool) -> None:
        """`reveal` is that of a session; without it tokens stay as they are."""
        self._reveal = reveal
        self._marks = _COLOURED if colours else (OPEN, CLOSE)
        self._known: dict[str, str] = {}

    async def prepare(self, *texts: str) -> None:
        """Ask for the tokens in texts that are not known yet."""
        if self._reveal is None:
            return
        for text in texts:
            for token in tokens.in_text(text) - self._known.keys():
                try:
                    value = await self._reveal(token)
                except DivingbellError:  # one of nobody's: it stays
                    value = token
                self._known[token] = one_line(value)[:MOST_SHOWN]

    def value_of(self, token: str) -> str | None:
        """Return what a token stands for, where that is known."""
        value = self._known.get(token)
        return None if value == token else value

    def held(self, text: str) -> str:
        """Return a text with its values, between characters that stand for marks and are as wide:
        for one that is laid out before it is shown."""
        return tokens.replaced(text, self._in_place)

    def marked(self, text: str) -> str:
        """Return a text with its values, and their marks. Columns of a table stay in their places:
        code has laid them out by the values, which had no marks."""
        return self.with_marks(_BESIDE.sub("", self.held(text)))

    def with_marks(self, text: str) -> str:
        """Return a text in which the marks stand for those characters."""
        head, tail = self._marks
        return text.replace(_HEAD, head).replace(_TAIL, tail)

    def _in_place(self, token: str) -> str:
        value = self.value_of(token)
        return token if value is None else f"{_HEAD}{value}{_TAIL}"


def certain(text: str) -> int:
    """Return how much of a text that goes on can be shown: at its end may be half a token."""
    found = _MAY_GO_ON.search(text)
    return len(text) if found is None else found.start()
