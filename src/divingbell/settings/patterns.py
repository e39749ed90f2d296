"""Patterns as shells have them (`*`, `?`, `[abc]`, `[!abc]`), in time that no text can stretch.

`fnmatch` makes one regular expression of a pattern, which can take minutes for a text that was
written for it. Here each piece between two stars has a fixed length and is looked for once, from
where the last one ended: nothing is tried again.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from divingbell.settings.markers import Check, Described, one_or_more
from divingbell.settings.tables import shown

MAX_PATTERN = 1000
"""Characters of a pattern. Names of servers, tools and users are shorter."""
_NOTHING = r"[^\s\S]"


class Piece(NamedTuple):
    """The part of a pattern between two stars."""

    expression: re.Pattern[str]
    width: int
    """How many characters it takes: always the same number."""


class Pattern:
    """One pattern, ready to be compared. Upper and lower case differ."""

    def __init__(self, text: str) -> None:
        """Read a pattern.

        Raises:
            ValueError: it is longer than a pattern may be.
        """
        if len(text) > MAX_PATTERN:
            raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
        self._first, *self._others = _pieces(text)

    def matches(self, text: str) -> bool:
        """Return whether the whole text is of this kind."""
        if self._first.expression.match(text) is None:
            return False
        position = self._first.width
        if not self._others:
            return position == len(text)
        *middle, last = self._others
        for piece in middle:
            found = piece.expression.search(text, position)
            if found is None:
                return False
            position = found.end()
        end = len(text) - last.width
        return end >= position and last.expression.match(text, end) is not None


class Patterns:
    """Several patterns; those that begin with `!` take away what the others let in.

    Where all begin with `!`, everything else is meant.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        given = tuple(texts)
        wanted = tuple(text for text in given if not text.startswith("!"))
        self._wanted = tuple(map(Pattern, wanted or ("*",)))
        self._unwanted = tuple(Pattern(text[1:]) for text in given if text.startswith("!"))

    def matches(self, text: str) -> bool:
        """Return whether one of them matches and none of those with `!` does."""
        return any(one.matches(text) for one in self._wanted) and not any(
            one.matches(text) for one in self._unwanted
        )


_SPECIAL = re.compile(r"[*?\[]")


def covers(wide: str, narrow: str) -> bool:
    """Return True only if every text that matches `narrow` matches `wide`, as far as that is plain:
    they are the same, or there is a star at the end of `wide` alone, or `narrow` is one text."""
    if wide == narrow or not _SPECIAL.search(narrow):
        return wide == narrow or Pattern(wide).matches(narrow)
    head = fixed_start(wide)
    return wide == f"{head}*" and fixed_start(narrow).startswith(head)


def may_share(first: str, second: str) -> bool:
    """Return False only if no text matches both patterns, as far as their beginnings say."""
    if not _SPECIAL.search(first):
        return Pattern(second).matches(first)
    if not _SPECIAL.search(second):
        return Pattern(first).matches(second)
    heads = fixed_start(first), fixed_start(second)
    return heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])


def fixed_start(text: str) -> str:
    """Return the beginning of a pattern that each text has which matches it."""
    return _SPECIAL.split(text, maxsplit=1)[0]


def pattern_text(value: Any) -> str:
    """Return the value if it is a pattern, perhaps with `!` in front.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or not value.removeprefix("!"):
        raise ValueError(f"{shown(value)} is no pattern: write text, with * for anything")
    Pattern(value.removeprefix("!"))
    return value


PatternText = Annotated[str, pattern_text]
PatternTexts = Annotated[
    tuple[PatternText, ...],
    one_or_more,
    Described('a list of patterns, such as ["github.*"]'),
    Check("", bool),
]


def _pieces(text: str) -> list[Piece]:
    pieces, expression, width, position = list[Piece](), "", 0, 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "*":
            pieces.append(Piece(re.compile(expression, re.DOTALL), width))
            expression, width = "", 0
            continue
        # A closing bracket that stands first is a member: `[]]`, `[!]]`.
        start = position + (text[position : position + 1] == "!")
        if character == "[" and (end := text.find("]", start + 1)) > 0:
            expression += _one_of(text[start:end], negated=start > position)
            position = end + 1
        else:
            expression += "." if character == "?" else re.escape(character)
        width += 1
    return [*pieces, Piece(re.compile(expression, re.DOTALL), width)]


def _one_of(members: str, *, negated: bool) -> str:
    """An expression for one character that is among these, or is not: `a-z`, `_.`."""
    inner, position = "", 0
    while position < len(members):
        first, last = members[position], members[position : position + 3][2:]
        if last and members[position + 1] == "-":
            inner += f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""
            position += 3
        else:
            inner += re.escape(first)
            position += 1
    if not inner:  # nothing but ranges that run backwards
        return "." if negated else _NOTHING
    return f"[{'^' if negated else ''}{inner}]"
