"""Cuts: where output was left out. What stands beside one may be half a value, and is hidden."""

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
MARK = " bytes left out"
_LEFT_OUT = re.compile(rf"\n?\[… [\d,]{{1,20}}{MARK}[^\n]{{0,300}}? …\]\n")
_BLANK = re.compile(r"\s")
_END_OF_KEY = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,30}PRIVATE KEY")
_LONGEST_KEY = 16_500
_LONGEST_BEFORE = 8192


def with_cuts(text: str, finds: list[Find], screen: Screen) -> list[Find]:
    """Return the finds of a text together with what is hidden beside its cuts."""
    return merged([*finds, *_beside(text, screen)]) if MARK in text else finds


def open_from(text: str) -> int:
    """Return where a cut begins whose other side has not all come yet, or the end of the text."""
    if MARK not in text:
        return len(text)
    unfinished = (
        cut.start() for cut in _LEFT_OUT.finditer(text) if _end_of_edge(text, cut.end()) is None
    )
    return next(unfinished, len(text))


def _beside(text: str, screen: Screen) -> Iterator[Find]:
    for cut in _LEFT_OUT.finditer(text):
        first = max(0, cut.start() - _LONGEST_BEFORE)
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
    blank = _BLANK.search(text, start + EDGE)
    return None if blank is None else blank.start()
