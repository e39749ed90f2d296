r"""Texts without what hides a value: `ann%40x.com`, `ann\u0040x.com`, `4111 <colour>1111`.

Only the neighbourhoods of such disguises are read a second time, so that a text without any costs
one pass of an engine.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from divingbell.border.privacy.engines import Gate
from divingbell.border.privacy.find import Find, merged
from divingbell.disguises import MOST, Disguises, View

AROUND = 300
"""Characters before and after a disguise that are read without it: as many as a value with its
context usually has."""
BEFORE = 80
"""Characters before a value that decide about it, as in `shape`."""
LONGEST_GATE = 32
"""Characters of a disguise as its gate knows it."""
PIECE = 1 << 13
_SIZE = 1 << 18
"""More than any neighbourhood has, so that it is one piece for `Disguises`."""
_ESCAPES = (
    r"\\(?:u00|U000000|x|u\{0{0,4})[2-7][0-9a-fA-F]|\\/|\\u2026",
    r"%(?:25){0,4}[2-7][0-9a-fA-F]",
    r"&(?:amp;){0,4}#[xX]?[0-9]",
    r"&(?:amp;){0,4}(?:commat|period|lowbar|hyphen|dash|nbsp|shy|plus|colon|sol|num|lpar|Tab);",
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]",
)
_WRITTEN = "".join(map(chr, range(0x20, 0x7F))) + "\n\r\t…"
_REMOVED = "\x7f"
"""A character that acts on a terminal: such are left out of a view."""
_REMOVED_CLASS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2069"
    "\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_BEYOND_SCRIPTS = 0x20000
"""Where the planes of Unicode begin that have no digits."""
_DISGUISED = re.compile(r"[\\%&\x00-\x1f\x7f]")
_SPACES = "\u00a0\u2000-\u200a\u202f\u205f\u3000"
_DASHES = "\u2010-\u2015\u2212\ufe63"
_MAY_HIDE = re.compile(r"[%\\&\x00-\x08\x0b-\x1f\x7f-\U0010ffff]")
_UNFINISHED = re.compile(
    # An escape, or what acts on a terminal, that may go on behind the text.
    r"(?:\\{1,16}(?:[uUx][{0-9a-fA-F]{0,8}|[0-7]{0,2})"
    r"|%(?:25)*[0-9a-fA-F]?"
    r"|&(?:amp;)*(?:#[0-9a-fA-FxX]{0,8}|\w{0,40})"
    r"|(?:\x1b\[|\x9b)[0-?]{0,1000}+[ -/]{0,100}+"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\n\r]{0,4096}+\x1b?"
    r"|\x1b[ -/]{0,100}+)\Z"
)
Made = TypeVar("Made")


class Finder(Protocol):
    """Finds values in a text as it stands."""

    def plain(self, text: str) -> Generator[None, None, list[Find]]:
        """Yield after each piece of work; return the finds, sorted and disjoint."""


def finished(steps: Generator[None, None, Made]) -> Made:
    """Do all the work at once, and return what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: Made = done.value
            return made


def neighbourhoods(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield what stands around disguises at these places, which are sorted.

    Each has about a piece at most. Two that had to be parted overlap.
    """
    start = end = -1
    for place in places:
        if start >= 0 and place - AROUND <= end and end - start < PIECE:
            end = place + AROUND
            continue
        if start >= 0:
            yield start, end
        start, end = max(0, place - AROUND), place + AROUND
    if start >= 0:
        yield start, end


def finds_without_disguise(text: str, finders: Sequence[Finder]) -> Iterator[Find]:
    """Yield what is found in what a text says without its disguises, by where it stands in it."""
    plain = text if text.isascii() else text.translate(_table())
    views = _disguises().views(plain, _SIZE)
    for view in views:
        finds = _finds("".join(piece for _, piece in view.pieces()), finders)
        places = view.located(index for find in finds for index in (find.start, find.end - 1))
        for find, (start, _), (_, end) in zip(finds, places, places, strict=False):
            yield Find(start, end, find.kind)
    if not views or plain != text:  # characters that take one another's place
        yield from _finds(plain, finders)


def undisguised(value: str) -> str:
    """Return a value that was found as it is meant: `ann@x.com` for `ann%40x.com`."""
    if value.isascii() and not _DISGUISED.search(value):
        return value
    plain = value if value.isascii() else value.translate(_table())
    views = _disguises().views(plain, _SIZE)
    # What was hidden twice is plain in the last one.
    shown = "".join(piece for _, piece in views[-1].pieces()) if views else plain
    return shown.replace(_REMOVED, "") or value


def is_judged_before(find: Find) -> bool:
    """Whether a find in a neighbourhood stands so far before the disguise that it hides nothing.

    What decides about it may be cut off there; it is found in the text as it stands, or is none.
    """
    return find.start < BEFORE and find.end < AROUND - LONGEST_GATE


class Reading(NamedTuple):
    """A way to read a text."""

    text: str
    view: View | None = None
    size: int = 0
    """Characters of the text that is read."""

    def place_of(self, index: int) -> int:
        """Return where a character of the reading begins in the text."""
        if self.view is None or index >= len(self.text):
            return index if self.view is None else self.size
        return next(self.view.located([index]))[0]


def may_hide(text: str) -> bool:
    """Say whether a text may have disguises."""
    return bool(_MAY_HIDE.search(text))


def may_escape(text: str) -> bool:
    """Say whether a text may have escapes."""
    return "\\" in text or "%" in text or "&" in text


def readings(text: str) -> Iterator[Reading]:
    """Yield the ways to read the end of a text that may go on without its disguises."""
    if not may_hide(text):
        return
    ends = [len(text)]
    if unfinished := _UNFINISHED.search(text, max(0, len(text) - MOST)):
        ends.append(unfinished.start())
    for end in ends:
        plain = text[:end] if text.isascii() else text[:end].translate(_table())
        yield Reading(plain)
        for view in _disguises().views(plain, _SIZE):
            said = "".join(piece for _, piece in view.pieces())
            yield Reading(said, view, len(plain))


def _finds(text: str, finders: Sequence[Finder]) -> list[Find]:
    return merged(itertools.chain.from_iterable(finished(each.plain(text)) for each in finders))


@functools.cache
def _disguises() -> Disguises:
    return Disguises(_WRITTEN)


@functools.cache
def _digits() -> dict[int, str]:
    """Decimal digits of all scripts but ours.

    They come in rows of ten, so that one look in ten finds each: looking at all takes 30 ms.
    """
    looks = map(chr, range(0x80, _BEYOND_SCRIPTS, 10))
    zeros = {ord(look) - unicodedata.decimal(look) for look in looks if look.isdecimal()}
    return {zero + value: str(value) for zero in sorted(zeros) for value in range(10)}


@functools.cache
def gates() -> tuple[Gate, ...]:
    """Return expressions for disguises."""
    removed = _in_utf8(_members(_REMOVED_CLASS))
    between = _in_utf8([*_members(_SPACES), *_members(_DASHES)])
    other = _in_utf8([*range(0xFF01, 0xFF5F), *_digits()])
    # Dashes, spaces and selectors of emoji are everywhere; they hide nothing but between these.
    hidden = (
        rf"[\w@.+-](?:{removed})",
        rf"(?:{removed})[\w@.+-]",
        rf"[0-9).](?:{between})[0-9(+]",
        other,
    )
    return (*map(Gate, (*_ESCAPES, *hidden)),)


def _in_utf8(characters: Iterable[int]) -> str:
    """An expression for one of these characters as bytes."""
    by_head: dict[bytes, list[int]] = {}
    for number in characters:
        data = chr(number).encode()
        by_head.setdefault(data[:-1], []).append(data[-1])
    return "|".join(f"{_bytes(head)}[{_ranges(lasts)}]" for head, lasts in by_head.items())


def _bytes(data: Iterable[int]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def _ranges(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    runs = itertools.groupby(ordered, key=lambda number: number - ordered.index(number))
    members = [list(run) for _, run in runs]
    return "".join(f"{_bytes(run[:1])}-{_bytes(run[-1:])}" for run in members)


@functools.cache
def _table() -> dict[int, str]:
    full = {number: chr(number - 0xFEE0) for number in range(0xFF01, 0xFF5F)}
    shown = {
        character: sign
        for among, sign in ((_REMOVED_CLASS, _REMOVED), (_SPACES, " "), (_DASHES, "-"))
        for character in _members(among)
    }
    return full | _digits() | shown


def _members(among: str) -> Iterator[int]:
    for first, last in re.findall(r"(.)(?:-(.))?", among, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)
