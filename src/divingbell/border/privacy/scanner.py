"""The scanner: finds values by their shapes."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

from divingbell.border.privacy import endings, shapes, views
from divingbell.border.privacy.analyzer import Analyzer
from divingbell.border.privacy.engines import Gate, Hit, engine
from divingbell.border.privacy.find import Find, merged

PIECE = 1 << 15
"""Characters that are looked through at once."""
MOST_HITS = 500
"""Hits that are looked at before others may run: the worst texts take 20 µs for each."""
LONGEST_GATE = 400
"""Characters that a match of a gate has at most; a little more than the longest has."""
LONGEST_OWN = 256
"""Characters of a find of a pattern from the settings: of longer ones, the last so many."""


_FEW_DIGITS = re.compile(r"\d(?:[ .\-/()+]{0,4}\d){4}")
"""Fewer than any number beside a rare word has, and as far apart as any of its digits are."""
LONGEST_DIGITS = 21
"""Characters of these."""


TINY = 256
"""Characters of a text that is asked first whether any shape could be in it: most results of a
model's cells are as short, and to wake the engine for one takes as long as all else at a border."""
_SIGNS = re.compile(
    # Addresses, and what is assigned; disguises; what was cut; the beginnings of keys that may have
    # no digit.
    r"[@:=\\%&\x00-\x08\x0b-\x1f\x7f]|\.\.\.|eyJ|PRIVATE KEY|AGE-SECRET"
)
_FEWEST_DIGITS = 4
"""Of all that consists of digits: a day of birth such as 1.2.90 has them."""
_SHORTEST_KEY = 16
"""Of a service; it has one digit at least."""


def may_hold(text: str) -> bool:
    """Say whether a value could be in a text by any shape, or in disguise; quick for a tiny one."""
    if len(text) > TINY or not text.isascii() or _SIGNS.search(text):
        return True
    digits = sum(map(text.count, "0123456789"))
    if digits == 0 or digits >= _FEWEST_DIGITS:
        return digits > 0
    return any(len(word) >= _SHORTEST_KEY and not word.isalpha() for word in text.split())


class Scanner:
    """Finds personal data and secrets in texts by how they are written.

    `kinds` are names of `kinds.KINDS`; `patterns` are expressions of one's own by the name of
    their kind, in the syntax of RE2. The time grows with the text, whatever stands in it. May be
    used by several threads. What an `analyzer` finds in a text as it stands is added.

    Raises:
        ConfigError: a kind is not known, an expression can't be used, or a package is missing.
    """

    def __init__(
        self,
        kinds: Iterable[str],
        patterns: Mapping[str, str] | None = None,
        analyzer: Analyzer | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._shapes = shapes.of_kinds(frozenset(kinds))
        self._endings = endings.Endings(self._shapes)
        self._own = list(patterns or {})
        self._own_have_blanks = any(map(endings.may_have_blanks, (patterns or {}).values()))
        owned: dict[Gate, list[int]] = {}
        for number, shape in enumerate(self._shapes):
            for gate in shape.gates:
                owned.setdefault(gate, []).append(number)
        self._owners = list(owned.values())
        """The numbers of the shapes that have a gate, by its own."""
        own = (Gate(expression, has_start=True) for expression in (patterns or {}).values())
        self._engine = engine((*owned, *own, *views.gates()))
        longest = (shape.longest_with_context for shape in self._shapes)
        # In disguise a value is longer: six characters for each, if all of it is escaped.
        self.longest = max(*longest, LONGEST_OWN, 2 * views.AROUND)
        """The most characters that a find can have together with what decides about it."""

    @property
    def waits(self) -> bool:
        """Whether finds wait for an analyzer, so that an event loop should not."""
        return self._analyzer is not None

    def finds(self, text: str, *more: views.Finder) -> list[Find]:
        """Return the finds, sorted and disjoint: what `scanning` returns, without giving way."""
        if len(text) > PIECE or self._analyzer:
            return views.finished(self.scanning(text, *more))
        # Most texts are one line: what a generator and its steps cost is a third of all then.
        scan = _Scan(self, text)
        hits = scan.hits_of_all() if self._own or may_hold(text) else ()
        if not hits and not more:
            return []
        found = scan.finds(hits)
        if not more and not scan.disguised:
            return merged(found)
        for finder in more:
            found += views.finished(finder.plain(text))
        for start, end in views.neighbourhoods(scan.disguised):
            found += _near(text, start, end, [self, *more])
        return merged(found)

    def scanning(self, text: str, *more: views.Finder) -> Generator[None, None, list[Find]]:
        """Find, together with other finders, also in what the text says without its disguises.

        Yields after each piece of 32 kB, or less where there are many hits, so that an event loop
        can give way there; returns the finds, sorted and disjoint.
        """
        scan = _Scan(self, text)
        found = yield from scan.steps()
        if self._analyzer:
            found += yield from self._analyzer.finding(text)
        for finder in more:
            found += yield from finder.plain(text)
        for start, end in views.neighbourhoods(scan.disguised):
            found += _near(text, start, end, [self, *more])
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


_NOWHERE = (0, 0)


class _Scan:
    """One text on its way through a scanner."""

    def __init__(self, scanner: Scanner, text: str) -> None:
        self._scanner, self._text = scanner, text
        self._decided: dict[int, int] = {}
        """Up to where a shape has decided, by its number."""
        self._last: dict[str, tuple[int, int]] = {}
        """The last find of a kind."""
        self._digits = -1
        """Where digits begin that may be those of a number, as far as that was looked for."""
        self.disguised: list[int] = []
        """Where disguises end, sorted."""

    def steps(self) -> Generator[None, None, list[Find]]:
        found: list[Find] = []
        for at in range(0, len(self._text), PIECE):
            hits = self.hits(at)
            for first in range(0, len(hits) or 1, MOST_HITS):
                found += self.finds(hits[first : first + MOST_HITS])
                yield
        return merged(found)

    def finds(self, hits: Iterable[Hit]) -> list[Find]:
        """Return what is found around hits. Those of a text come by where they end."""
        found: list[Find] = []
        # All in one loop: where each line has hits, calls and attributes were half of the time.
        shapes, owners, own = self._scanner._shapes, self._scanner._owners, self._scanner._own
        text, decided, lasts = self._text, self._decided, self._last
        shared, all_own = len(owners), len(owners) + len(own)
        for gate, start, end in hits:
            if gate >= shared:
                if gate < all_own:
                    found.append(Find(max(0, start), end, own[gate - shared]))
                else:
                    self.disguised.append(end)
                continue
            for number in owners[gate]:
                shape = shapes[number]
                known = decided.get(number, 0)
                first, last = lasts.get(shape.kind, _NOWHERE)
                if shape.rare_words:
                    digits = self._digits_from(end)
                    if digits > end + shape.reach + shape.longest:
                        continue
                    # Nothing that is a number stands before one that is known already.
                    if first <= digits < last and last > known:
                        known = last
                # Most numbers are of several shapes of one kind, and let a gate through at each
                # part.
                elif end < known or first < end <= last:
                    continue
                elif end > last > known:
                    known = last
                decided[number], places = shape.look(text, end, known)
                if places:
                    lasts[shape.kind] = places[-1]
                    found += [Find(begin, stop, shape.kind) for begin, stop in places]
        return found

    def hits_of_all(self) -> list[Hit]:
        """The hits of a text that is one piece, by their places in it."""
        data = f"\n{self._text}".encode("utf-8", "replace")
        hits: Iterable[Hit] = self._scanner._engine.hits(data)
        if hits and len(data) != len(self._text) + 1:
            hits = _in_characters(hits, data)
        return [(gate, start - 1, end - 1) for gate, start, end in hits]

    def hits(self, at: int) -> list[Hit]:
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

    def _digits_from(self, end: int) -> int:
        """Return where the next digits of a number begin, or a place before that: what is asked for
        place by place, by many words in a row, is looked for once."""
        if self._digits < end:
            match = _FEW_DIGITS.search(self._text, end, end + PIECE)
            self._digits = match.start() if match else end + PIECE - LONGEST_DIGITS
        return self._digits


def _near(text: str, start: int, end: int, finders: Sequence[views.Finder]) -> Iterator[Find]:
    """Yield what is found in a neighbourhood without its disguises, by its place in the text."""
    for find in views.finds_without_disguise(text[start:end], finders):
        if start == 0 or not views.is_judged_before(find):
            yield Find(start + find.start, start + find.end, find.kind)


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
