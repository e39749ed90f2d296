"""Pages: long lists, a part at a time."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.wire import Page

T = TypeVar("T")


def page(items: Iterable[T], given: Page, name: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Return the part of a list that was asked for, and the cursor of the next; None at the end.

    A cursor is what `name` returns for the last item of the part before.

    Raises:
        Refused: the cursor is of no item that is there.
    """
    found = list(items)
    start = 0
    if given.cursor is not None:
        names = [name(each) for each in found]
        if given.cursor not in names:
            words = "the list has changed, and the cursor is of nothing in it: begin it again"
            raise Refused(409, "cursor_gone", words)
        start = names.index(given.cursor) + 1
    part = found[start : start + given.limit]
    is_last = start + given.limit >= len(found)
    return part, None if is_last or not part else name(part[-1])
