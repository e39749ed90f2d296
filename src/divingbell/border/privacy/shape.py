r"""A shape: how values of one kind are written, and what decides whether one is meant.

The gate is looked for by an engine, together with those of all other shapes. It lets through too
much, never too little. Around its hits the pattern says exactly where a value begins and ends, and
the check whether it is one.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from divingbell.border.privacy.engines import Gate

NEAR = 40
"""Characters between a word and the value that it speaks of; for a gate, bytes."""
NEAR_BEHIND = 12
"""The same for a word that comes after the value."""
LONGEST_WORDS = 40
"""Characters that the words of a shape take at most."""
LONGEST_UNLESS = 80
"""Characters around a value that are asked whether something else is meant."""
FEW_PLACES = 16
"""Places at which a match is tried one by one, in place of a search that goes on behind them."""
LONGEST_BACKWARDS = 66
"""Characters of the first part of a value: the mailbox of an e-mail address."""

# JSON and repr write the end of a line as two characters, and the second one is a letter.
BEGIN = r"(?:\b|\\[nrt])"
"""Where a value begins, in a gate."""
MARK = r"(?:\.\.\.|…)"
"""What stands for the rest of a value that pandas or polars has cut, in a gate."""
IS_CUT = rf"(?={MARK})"
"""The same, behind a value, in a pattern."""

_ESCAPED = re.compile(r"(?<=\\)(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf])|(?<=%)[0-9a-fA-F]{2}")


def _in_any_case(words: str) -> str:
    """Return an expression for a gate, to whose engine only letters of ASCII have a case."""
    return "".join(
        letter if letter.isascii() or letter.upper() == letter else f"(?:{letter}|{letter.upper()})"
        for letter in words
    )


def _always(value: str) -> bool:
    return True


@dataclass(frozen=True)
class Shape:
    """One way in which values of a kind are written.

    No match of the pattern may begin within another that has failed, but for a few of them: this
    is what keeps the work in proportion to the text. So patterns begin with a look-behind that
    forbids what they go on with.
    """

    kind: str
    gate: str
    expression: str
    """The pattern: the value; or what it begins after, if there is a `rest`."""
    longest: int
    """Characters that a match of the pattern has at most."""
    longest_gate: int = 0
    """Characters from where the pattern's match begins to where that of the gate ends, at most; if
    they are fewer than `longest`, less is looked at."""
    check: Callable[[str], bool] = _always
    """Says of a text that looks like a value whether it is one."""
    rest: "re.Pattern[str] | None" = None
    """The value after the pattern's match: for those that may be long. Its last group counts."""
    longest_rest: int = 0
    backwards: "re.Pattern[str] | None" = None
    """The first part of a value, before the pattern's match, read from right to left."""
    words: str = ""
    """An expression for words in small letters, one of which must stand shortly before the value.
    How they are written does not matter."""
    words_behind: str = ""
    """The same for words after it; one of either is enough."""
    rare_words: str = ""
    """Words before the value, as `words`, that are rare in all texts. The engine looks for them
    alone and the gate is not used, so that there may be hundreds."""
    unless: "re.Pattern[str] | None" = None
    """What must not stand right before the value, in small letters."""
    unless_reach: int = LONGEST_UNLESS
    """Characters that it takes at most."""
    unless_behind: "re.Pattern[str] | None" = None
    """What must not stand right after it."""

    @functools.cached_property
    def pattern(self) -> "re.Pattern[str]":
        """Compiled once its gate has a hit: all of them together take a fifth of a second."""
        return re.compile(self.expression)

    @functools.cached_property
    def gates(self) -> list[Gate]:
        """The expressions for an engine."""
        if self.rare_words:
            return [Gate(f"(?i:{_in_any_case(self.rare_words)})")]
        if not self.words and not self.words_behind:
            return [Gate(self.gate)]
        gates = []
        if self.words:
            words = _in_any_case(self.words)
            gates.append(Gate(rf"(?i:{words})[\x00-\xff]{{0,{NEAR}}}?{self.gate}"))
        if self.words_behind:
            words = _in_any_case(self.words_behind)
            behind = rf"[\x00-\xff]{{0,{NEAR_BEHIND}}}?(?i:{words})"
            gates.append(Gate(f"{self.gate}{behind}"))
        return gates

    @functools.cached_property
    def reach(self) -> int:
        """Characters before the end of a hit among which a match begins; after it, if that is a
        rare word."""
        if self.rare_words:
            return NEAR + 1
        longest = self.longest_gate or self.longest
        return longest + (NEAR_BEHIND + LONGEST_WORDS if self.words_behind else 1)

    @property
    def longest_with_context(self) -> int:
        """Characters of a value together with all that decides about it."""
        before = NEAR + LONGEST_WORDS if self.words or self.rare_words else LONGEST_UNLESS
        longest = max(self.reach, self.longest + 1)
        return before + LONGEST_BACKWARDS + longest + self.longest_rest

    def look(self, text: str, end: int, decided: int) -> tuple[int, list[tuple[int, int]]]:
        """Look around a hit that ends there. Values that begin before `decided` are known already.

        Returns up to where it is decided now, and the places of values. Where hits are close, it
        looks beyond this one as far as before it, so that those in a row cost no more than one.
        """
        reach = self.reach
        at = end - reach
        is_alone = decided <= at and not self._has_any_words
        limit = end if is_alone else end + reach
        last = limit + self.longest + 1
        if self.rare_words:
            at = end
        if decided > at:
            at = decided
        found = []
        pattern = self.pattern
        while at < limit:
            if limit - at > FEW_PLACES:
                match = pattern.search(text, at, last)
                if match is None or match.start() >= limit:
                    break
            elif (match := self._next(text, at, limit, last)) is None:
                break
            place = self._place(text, match)
            if place is None:
                at = match.start() + 1
                continue
            start, stop = place
            if self.check(text[start:stop]) and self._is_meant(text, start, stop):
                found.append(place)
            # What is none as a whole is none in part, either.
            at = match.end()
            if stop > at:
                at = stop
        return (limit if limit > at else at), found

    @functools.cached_property
    def _has_any_words(self) -> bool:
        """Whether one hit may stand for several values, which share a word."""
        return bool(self.words or self.words_behind or self.rare_words)

    def _next(self, text: str, at: int, limit: int, last: int) -> "re.Match[str] | None":
        """Return the first match that begins at one of these few places; none of it is beyond
        `last`.

        Where hits are close together, only few places are new with each. A search would look at all
        up to `last` again: measured with a word every three characters, ten times the work.
        """
        for place in range(at, limit):
            if match := self.pattern.match(text, place, last):
                return match
        return None

    def _place(self, text: str, match: "re.Match[str]") -> tuple[int, int] | None:
        start, end = match.span()
        if self.rest is not None:
            if not (rest := self.rest.match(text, end)):
                return None
            start, end = rest.span(rest.lastindex or 0)
        if self.backwards is not None:
            before = text[max(0, start - LONGEST_BACKWARDS) : start]
            if not (first := self.backwards.match(before[::-1])):
                return None
            start -= first.end()
        if start and text[start - 1] in "\\%" and (escaped := _ESCAPED.match(text, start, end)):
            start = escaped.end()
        return start, end

    def _is_meant(self, text: str, start: int, end: int) -> bool:
        # In small letters, because `re` takes several times as long where case does not matter.
        before = max(0, start - self.unless_reach)
        if self.unless and self.unless.search(text[before:start].lower()):
            return False
        if self.unless_behind and self.unless_behind.match(text, end):
            return False
        return not (self.words or self.words_behind) or self._has_words(text, start, end)

    def _has_words(self, text: str, start: int, end: int) -> bool:
        before, behind = self._word_patterns
        if before and before.search(text[max(0, start - NEAR - LONGEST_WORDS) : start].lower()):
            return True
        if not behind:
            return False
        near = behind.search(text[end : end + NEAR_BEHIND + LONGEST_WORDS].lower())
        return bool(near and near.start() <= NEAR_BEHIND)

    @functools.cached_property
    def _word_patterns(self) -> tuple["re.Pattern[str] | None", "re.Pattern[str] | None"]:
        before, behind = (
            re.compile(words) if words else None for words in (self.words, self.words_behind)
        )
        return before, behind
