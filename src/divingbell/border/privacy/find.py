"""Finds: places of a text with a kind."""

from collections.abc import Iterable
from typing import NamedTuple

from divingbell.border.privacy.kinds import rank


class Find(NamedTuple):
    """A place in a text, in characters, and the kind of what stands there."""

    start: int
    end: int
    kind: str


def merged(finds: Iterable[Find]) -> list[Find]:
    """Return finds sorted and disjoint.

    Those that overlap become one that covers all of them, so that no part of a value is left over.
    It has the kind of the longest; of two as long, the kind that says more.
    """
    ordered = sorted(finds)
    if len(ordered) < 2:
        return ordered
    joined: list[Find] = []
    longest = 0
    for find in ordered:
        length = find.end - find.start
        if not joined or find.start >= joined[-1].end:
            joined.append(find)
            longest = length
            continue
        last = joined[-1]
        kind = last.kind
        if (length, -rank(find.kind)) > (longest, -rank(kind)):
            kind, longest = find.kind, length
        joined[-1] = Find(last.start, max(last.end, find.end), kind)
    return joined
