"""Looks at what an interpreter holds: its variables, and how code could go on.

One look is under way at a time. What comes back is hostile, as everything from inside.
"""

import asyncio
from typing import Any, NamedTuple

from divingbell.models import Completion, Variable
from divingbell.session.intake import field_of
from divingbell_inside import frames

MAX_VARIABLES = 500
MAX_COMPLETIONS = 200
MAX_COMPLETION = 200


class Seen(NamedTuple):
    """An answer of the interpreter: a list of anything, and bytes."""

    items: list[Any]
    body: bytes = b""


class Looks:
    """The look that is under way, and its number."""

    def __init__(self) -> None:
        self._seen: asyncio.Future[Seen] | None = None
        self._number = 0

    def begin(self) -> tuple[int, "asyncio.Future[Seen]"]:
        """Return the number of a new look, and what will have been seen."""
        self._seen = asyncio.get_running_loop().create_future()
        self._number += 1  # one that was given up may still be answered
        return self._number, self._seen

    def end(self) -> None:
        """Forget the look: nobody waits for it any more."""
        self._seen = None

    def answered(self, header: frames.Header, body: bytes = b"") -> None:
        """Take what the interpreter says it has seen, perhaps without being asked."""
        if header.get("look") == self._number:
            self._settle(Seen(field_of(header, "items", list, []), body))

    def lost(self) -> None:
        """Settle the look without anything seen: the interpreter is gone."""
        self._settle(Seen([]))

    def _settle(self, seen: Seen) -> None:
        if self._seen is not None and not self._seen.done():
            self._seen.set_result(seen)


def completions_of(items: list[Any], length: int) -> list[Completion]:
    """Read the answer to a question how code of this length could go on."""
    found = []
    for item in items[:MAX_COMPLETIONS]:
        if isinstance(item, list) and [type(part) for part in item] == [int, int, str]:
            start, end, text = item
            if 0 <= start <= end <= length and len(text) <= MAX_COMPLETION:
                found.append(Completion(start, end, text))
    return found


def variables_of(items: list[Any]) -> list[Variable]:
    """Read the answer to a look at the variables."""
    found = []
    for item in items[:MAX_VARIABLES]:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            shape = item.get("shape")
            sizes = isinstance(shape, list) and all(type(size) is int for size in shape)
            found.append(
                Variable(
                    name=item["name"],
                    type=field_of(item, "type", str, "?"),
                    shape=tuple(shape) if sizes and shape is not None else None,
                    length=field_of(item, "length", int),
                    preview=field_of(item, "preview", str),
                )
            )
    return found
