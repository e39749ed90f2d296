r"""A shape: how values of one kind are written, and what decides whether one is meant.

The gate is looked for by an engine, together with those of all other shapes. It lets through too
much, never too little. Around its hits the pattern says exactly where a value begins and ends, and
the check whether it is one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from divingbell.border.privacy.engines import Gate

NEAR = 40
"""Characters between a word and the value that it speaks of."""
NEAR_BEHIND = 12
"""The same for a word that comes after the value."""
LONGEST_WORDS = 40
"""Characters that the words of a shape take at most."""

# JSON and repr write the end of a line as two characters, and the second one is a letter.
BEGIN = r"(?:\b|\\[nrt])"
"""Where a value begins, in a gate."""
START = r"(?:(?<!\w)|(?<=\\[nrt]))"
"""Where a value begins, in a pattern."""

_ESCAPED = re.compile(r"(?<=\\)(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf])|(?<=%)[0-9a-fA-F]{2}")


def _always(match: "re.Match[str]") -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Shape:
    """One way in which values of a kind are written.

    No match of the pattern may begin within another that has failed, but for a few of them: this
    is what keeps the work in proportion to the text. So patterns begin with a look-behind that
    forbids what they go on with.
    """

    kind: str
    gate: str
    pattern: "re.Pattern[str]"
    """The group that matches last is the value; without groups, all of it is."""
    longest: int
    """Characters that a match has at most."""
    check: Callable[["re.Match[str]"], bool] = _always
    words: str = ""
    """An expression for words, one of which must stand shortly before the value."""
    words_behind: str = ""
    """The same for words after it; one of either is enough."""
    backwards: "re.Pattern[str] | None" = None
    """What belongs to a value before its match, as an expression that is read from right to left."""
    _before: "re.Pattern[str] | None" = field(init=False, repr=False, default=None)
    _behind: "re.Pattern[str] | None" = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.words:
            object.__setattr__(self, "_before", re.compile(self.words, re.IGNORECASE))
        if self.words_behind:
            object.__setattr__(self, "_behind", re.compile(self.words_behind, re.IGNORECASE))

    @property
    def gates(self) -> list[Gate]:
        """The expressions for an engine."""
        if not self.words and not self.words_behind:
            return [Gate(self.gate)]
        gates = []
        if self.words:
            gates.append(Gate(rf"(?i:{self.words})[\x00-\xff]{{0,{NEAR}}}?{self.gate}"))
        if self.words_behind:
            behind = rf"[\x00-\xff]{{0,{NEAR_BEHIND}}}?(?i:{self.words_behind})"
            gates.append(Gate(f"{self.gate}{behind}"))
        return gates

    @property
    def reach(self) -> int:
        """Characters before the end of a hit among which the value begins; with its context."""
        around = NEAR + LONGEST_WORDS if self.words or self.words_behind else 1
        return self.longest + around + (self.backwards is not None) * 70

    def look(self, text: str, end: int, decided: int) -> tuple[int, list[tuple[int, int]]]:
        """Look around a hit that ends there. Values that begin before `decided` are known already.

        Returns up to where it is decided now, and the places of values. Beyond the hit it looks
        as far as before it, so that hits in a row cost no more than one.
        """
        limit = end + self.reach
        found = []
        at = max(decided, end - self.reach)
        while match := self.pattern.search(text, at, limit + self.longest + 1):
            if match.start() >= limit:
                break
            if self._is_meant(text, match) and self.check(match):
                found.append(self._place(text, match))
                at = match.end()
            else:
                at = match.start() + 1
        return max(limit, at), found

    def _is_meant(self, text: str, match: "re.Match[str]") -> bool:
        if self._before is None and self._behind is None:
            return True
        start, end = match.span()
        if self._before and self._before.search(text, max(0, start - NEAR - LONGEST_WORDS), start):
            return True
        reach = end + NEAR_BEHIND + LONGEST_WORDS
        behind = self._behind and self._behind.search(text, end, reach)
        return bool(behind and behind.start() <= end + NEAR_BEHIND)

    def _place(self, text: str, match: "re.Match[str]") -> tuple[int, int]:
        start, end = match.span(match.lastindex or 0)
        if self.backwards is not None and (more := self._before_match(text, start)):
            start -= len(more)
        if start and text[start - 1] in "\\%" and (escaped := _ESCAPED.match(text, start, end)):
            start = escaped.end()
        return start, end

    def _before_match(self, text: str, start: int) -> str:
        assert self.backwards is not None
        more = self.backwards.match(text[max(0, start - 66) : start][::-1])
        return more[0] if more else ""
