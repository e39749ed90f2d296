"""Cuts: where output was left out. What stands beside one may be half a value, and is hidden."""

import itertools
import re
from collections.abc import Iterator

from divingbell.border.privacy.find import Find, merged
from divingbell.border.privacy.screen import Screen

CUT = "cut"
"""The kind of what is hidden; no value can be of such a kind."""
SHOWN = "…"
"""What is shown for it. Where this stands beside a cut nothing is hidden any more."""
EDGE = 200
"""Characters behind a cut that are hidden, up to the next blank: more than most values have."""
MOST_CUTS = 8
MARK = " bytes left out"
_LEFT_OUT = re.compile(rf"\n?\[… [\d,]{{1,20}}{MARK}[^\n]{{0,300}}? …\]\n")
_BLANK = re.compile(r"\s")
_END_OF_KEY = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,30}PRIVATE KEY")
_LONGEST_KEY = 16_500
_LONGEST_BEFORE = 8192
_LONGEST_WORD = 2048
"""Characters without a blank that may be part of one value, unless it is a private key."""


def with_cuts(text: str, finds: list[Find], screen: Screen) -> list[Find]:
    """Return the finds of a text together with what is hidden beside its cuts."""
    return merged([*finds, *_beside(text, screen)]) if MARK in text else finds


def open_from(text: str) -> int:
    """Return where a cut begins whose other side has not all come yet, or the end of the text."""
    if MARK not in text:
        return len(text)
    unfinished = (cut.start() for cut in _cuts_in(text) if _end_of_edge(text, cut.end()) is None)
    return next(unfinished, len(text))


def _cuts_in(text: str) -> "Iterator[re.Match[str]]":
    """The first cuts of a text: we make one a stream, and code may print any number of them."""
    return itertools.islice(_LEFT_OUT.finditer(text), MOST_CUTS)


def _beside(text: str, screen: Screen) -> Iterator[Find]:
    for cut in _cuts_in(text):
        first = max(0, cut.start() - _LONGEST_BEFORE)
        if not _END_OF_KEY.search(text, first, cut.start()):
            first = max(first, cut.start() - _LONGEST_WORD)
        before = text[first : cut.start()]
        if before and not before.endswith(SHOWN):
            decided = screen.settled(before).end
            if decided < len(before):
                yield Find(first + decided, cut.start(), CUT)
        if cut.end() < len(text) and not text.startswith(SHOWN, cut.end()):
            yield Find(cut.end(), _end_of_edge(text, cut.end()) or len(text), CUT)


def _end_of_edge(text: str, start: int) -> int | None:
    """Where what may be the rest of a value ends; None if that is not there yet."""
    if text.startswith(SHOWN, start):
        return start
    key = _END_OF_KEY.search(text, start, start + _LONGEST_KEY)
    if key is not None and key[1] == "END":
        return key.end()
    blank = _BLANK.search(text, start + EDGE, start + _LONGEST_WORD)
    if blank is None and len(text) > start + _LONGEST_WORD:
        return start + _LONGEST_WORD
    return None if blank is None else blank.start()
