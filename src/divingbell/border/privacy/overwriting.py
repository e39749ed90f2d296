r"""Overwriting: values that a carriage return or a backspace stands in.

On a terminal `4111X\b 1111 1111 1111` is the number of a card.
"""

import re
from collections.abc import Iterator, Sequence

from divingbell.border.privacy import views
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.views import Finder

_OVERWRITING = re.compile(r"\r(?!\n)|\x08")


def occurs(text: str) -> bool:
    """Say whether something may be overwritten in a text."""
    return "\r" in text or "\b" in text


def finds(text: str, finders: Sequence[Finder]) -> Iterator[list[Find]]:
    """Yield the finds around each place where something is overwritten."""
    places = (match.end() for match in _OVERWRITING.finditer(text))
    for start, end in views.neighbourhoods(places):
        shown = places_shown(text, start, min(end, len(text)))
        read = "".join(text[place] for place in shown)
        found = (find for finder in finders for find in views.finished(finder.plain(read)))
        spans = ((shown[find.start], shown[find.end - 1] + 1, find.kind) for find in found)
        yield [Find(*span) for span in spans if _OVERWRITING.search(text, span[0], span[1])]


def places_shown(text: str, start: int, end: int) -> list[int]:
    """Return the places of the characters that are left, without returns."""
    shown: list[int] = []
    for place in range(start, end):
        if text[place] == "\x08" and shown:
            shown.pop()
        elif text[place] not in "\r\x08" or text[place : place + 2] == "\r\n":
            shown.append(place)
    return shown
