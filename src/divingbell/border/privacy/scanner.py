"""The scanner: finds values by their shapes."""

from collections.abc import Generator, Iterable, Mapping

from divingbell.border.privacy import shapes, views
from divingbell.border.privacy.engines import Engine, Gate, engine
from divingbell.border.privacy.find import Find, merged
from divingbell.errors import ConfigError

PIECE = 1 << 16
"""Characters that are looked through at once."""
LONGEST_GATE = 400
"""Characters that a match of a gate has at most."""
LONGEST_OWN = 256
"""Characters of a find of a pattern from the settings, if it is to be found in a stream."""


class Scanner:
    """Finds personal data and secrets in texts by how they are written.

    `kinds` are names of `kinds.KINDS`; `patterns` are expressions of one's own by the name of
    their kind, in the syntax of RE2. The time grows with the text, whatever stands in it.

    Raises:
        ConfigError: a kind is not known, an expression can't be used, or a package is missing.
    """

    def __init__(self, kinds: Iterable[str], patterns: Mapping[str, str] | None = None) -> None:
        self._shapes = shapes.of_kinds(frozenset(kinds))
        self._own = list(patterns or {})
        owners = [
            (number, gate) for number, shape in enumerate(self._shapes) for gate in shape.gates
        ]
        own = [
            Gate(_checked(name, expression), True) for name, expression in (patterns or {}).items()
        ]
        self._owner = [number for number, _ in owners]
        self._engine: Engine = engine((*(gate for _, gate in owners), *own))
        reaches = [shape.longest_with_context for shape in self._shapes]
        self.longest = max([*reaches, LONGEST_OWN if own else 0], default=0)
        """The most characters that a find can have together with what decides about it."""

    def finds(self, text: str) -> list[Find]:
        """Return the finds, sorted and disjoint."""
        return views.finished(self.scanning(text))

    def scanning(self, text: str) -> Generator[None, None, list[Find]]:
        """Do the same, and yield after each piece of 64 kB: an event loop can give way there."""
        return views.scanning(text, [self])

    def plain(self, text: str) -> Generator[None, None, list[Find]]:
        """Do the same in the text as it stands, escapes and all."""
        found: list[Find] = []
        decided = [0] * len(self._shapes)
        for at in range(0, len(text), PIECE):
            found += self._finds_in_piece(text, at, decided)
            yield
        return merged(found)

    def _finds_in_piece(self, text: str, at: int, decided: list[int]) -> Iterable[Find]:
        # A hit belongs to the piece that it ends in. One more character, because what follows a
        # value decides where it ends; and one before the first, because gates ask for it.
        begin = max(0, at - LONGEST_GATE)
        piece = text[begin : at + PIECE + 1]
        if begin == 0:
            begin, piece = -1, "\n" + piece
        for gate, start, end in self._engine.hits(piece.encode("latin-1", "replace")):
            if not at < begin + end <= at + PIECE:
                continue
            if gate >= len(self._owner):
                yield Find(begin + start, begin + end, self._own[gate - len(self._owner)])
                continue
            number = self._owner[gate]
            if begin + end >= decided[number]:
                shape = self._shapes[number]
                decided[number], places = shape.look(text, begin + end, decided[number])
                for place in places:
                    yield Find(*place, shape.kind)


def _checked(name: str, expression: str) -> str:
    try:
        expression.encode("latin-1")
    except UnicodeEncodeError:
        raise ConfigError(
            f"The pattern of {name} has characters beyond Latin-1: write it with others."
        ) from None
    return expression
