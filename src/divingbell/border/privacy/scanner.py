"""The scanner: finds values by their shapes."""

from collections.abc import Generator, Iterable, Iterator, Mapping

from divingbell.border.privacy import endings, shapes, views
from divingbell.border.privacy.engines import Gate, Hit, engine
from divingbell.border.privacy.find import Find, merged

PIECE = 1 << 15
"""Characters that are looked through at once."""
LONGEST_GATE = 400
"""Characters that a match of a gate has at most; a little more than the longest has."""
LONGEST_OWN = 256
"""Characters of a find of a pattern from the settings: of longer ones, the last so many."""


class Scanner:
    """Finds personal data and secrets in texts by how they are written.

    `kinds` are names of `kinds.KINDS`; `patterns` are expressions of one's own by the name of
    their kind, in the syntax of RE2. The time grows with the text, whatever stands in it. May be
    used by several threads.

    Raises:
        ConfigError: a kind is not known, an expression can't be used, or a package is missing.
    """

    def __init__(self, kinds: Iterable[str], patterns: Mapping[str, str] | None = None) -> None:
        self._shapes = shapes.of_kinds(frozenset(kinds))
        self._endings = endings.Endings(self._shapes)
        self._own = list(patterns or {})
        self._own_have_blanks = any(map(endings.may_have_blanks, (patterns or {}).values()))
        owned = [
            (number, gate) for number, shape in enumerate(self._shapes) for gate in shape.gates
        ]
        self._owners = [number for number, _ in owned]
        own = (Gate(expression, has_start=True) for expression in (patterns or {}).values())
        self._engine = engine((*(gate for _, gate in owned), *own, *views.gates()))
        longest = (shape.longest_with_context for shape in self._shapes)
        # In disguise a value is longer: six characters for each, if all of it is escaped.
        self.longest = max(*longest, LONGEST_OWN, 2 * views.AROUND)
        """The most characters that a find can have together with what decides about it."""

    def finds(self, text: str) -> list[Find]:
        """Return the finds, sorted and disjoint."""
        return views.finished(self.scanning(text))

    def scanning(self, text: str, *more: views.Finder) -> Generator[None, None, list[Find]]:
        """Find, together with other finders, also in what the text says without its disguises.

        Yields after each piece of 32 kB, so that an event loop can give way there; returns the
        finds, sorted and disjoint.
        """
        scan = _Scan(self, text)
        found = yield from scan.steps()
        for finder in more:
            found += yield from finder.plain(text)
        for start, end in views.neighbourhoods(scan.disguised):
            for find in views.finds_without_disguise(text[start:end], [self, *more]):
                if start == 0 or not views.is_judged_before(find):
                    found.append(Find(start + find.start, start + find.end, find.kind))
            yield
        return merged(found)

    def plain(self, text: str) -> Generator[None, None, list[Find]]:
        """Yield after each piece; return the finds in the text as it stands, escapes and all."""
        return _Scan(self, text).steps()

    def open_from(self, text: str) -> int:
        """Return from where on what follows a text may change what is found in it by shape.

        It is asked of the text as it stands; disguises are the matter of `Screen.settled`.
        """
        own = max(0, len(text) - LONGEST_OWN) if self._own_have_blanks else len(text)
        return min(own, self._endings.open_from(text))


class _Scan:
    """One text on its way through a scanner."""

    def __init__(self, scanner: Scanner, text: str) -> None:
        self._scanner, self._text = scanner, text
        self._decided = [0] * len(scanner._shapes)
        self._last: dict[str, int] = {}
        """Where the last find of a kind ends."""
        self.disguised: list[int] = []
        """Where disguises end, sorted."""

    def steps(self) -> Generator[None, None, list[Find]]:
        found: list[Find] = []
        owners, own = self._scanner._owners, self._scanner._own
        for at in range(0, len(self._text), PIECE):
            for gate, start, end in self._hits(at):
                if gate < len(owners):
                    found += self._finds_at(owners[gate], end)
                elif gate < len(owners) + len(own):
                    found.append(Find(max(0, start), end, own[gate - len(owners)]))
                else:
                    self.disguised.append(end)
            yield
        return merged(found)

    def _hits(self, at: int) -> list[Hit]:
        """The hits that end in a piece, by their places in the text."""
        # One more character, because what follows a value decides where it ends; and one before
        # the first, because gates ask for it.
        begin = max(0, at - LONGEST_GATE)
        piece = self._text[begin : at + PIECE + 1]
        if begin == 0:
            begin, piece = -1, "\n" + piece
        data = piece.encode("utf-8", "replace")
        hits: Iterable[Hit] = self._scanner._engine.hits(data)
        if len(data) != len(piece):
            hits = _in_characters(hits, data)
        low, high = at - begin, at + PIECE - begin
        return [(gate, begin + a, begin + b) for gate, a, b in hits if low < b <= high]

    def _finds_at(self, number: int, end: int) -> list[Find]:
        shape = self._scanner._shapes[number]
        # Most numbers are of several shapes of one kind.
        if end < self._decided[number] or self._last.get(shape.kind) == end:
            return []
        self._decided[number], places = shape.look(self._text, end, self._decided[number])
        if places:
            self._last[shape.kind] = places[-1][1]
        return [Find(*place, shape.kind) for place in places]


def _in_characters(hits: Iterable[Hit], data: bytes) -> Iterator[Hit]:
    """The same hits, which are sorted, by characters of the text that these bytes are."""
    last = place = 0
    for gate, start, end in hits:
        # A gate reads bytes, so that its match may end within a character.
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        place += len(data[last:end].decode("utf-8", "ignore"))
        last = end
        # Only own patterns say where they start, and what they find has an end.
        length = len(data[max(start, end - LONGEST_OWN) : end].decode("utf-8", "ignore"))
        yield gate, place - length, place
