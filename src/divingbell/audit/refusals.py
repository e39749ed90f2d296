"""Refusals: what was sent nowhere and ran nothing costs its sender nothing, so it may come in any
number. Some of each user are written one by one, and the others are counted."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from divingbell.audit.records import Record, Records, Refusal
from divingbell.shares.buckets import Buckets

ONE_BY_ONE, WITHIN = 60, 60.0
"""Refusals of a user that have a record each, in that many seconds."""
EVERY = 1.0
"""Seconds after which those that were counted are written."""
MOST_COUNTS = 1_000
"""Counts that are kept at once; beyond them, all users share those of nobody in particular."""


@dataclass(slots=True)
class _Count:
    number: int
    last: Record


class Refusals:
    """Counts what is refused beyond a rate, and gives a record of it to `write` each second, with
    the number of refusals that it stands for. For one event loop."""

    def __init__(self, records: Records, write: Callable[[Record, int], None]) -> None:
        self._records = records
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._buckets = Buckets(ONE_BY_ONE, WITHIN, time.monotonic)
        self._counts: dict[tuple[str, str, str], _Count] = {}
        self._timer: asyncio.TimerHandle | None = None

    def takes(self, event: Refusal) -> bool:
        """Count a refusal, if its user has had enough records of their own; return whether so."""
        user = event.principal.user
        if not self._buckets.wait(user, 1.0):
            self._buckets.take(user, 1.0)
            return False
        last = self._records.in_short(event)
        key = (user, str(last["kind"]), str(last.get("outcome")))
        if key not in self._counts and len(self._counts) >= MOST_COUNTS:
            key = ("", *key[1:])
            last |= {"user": "", "conversation": "", "session": ""}
        before = self._counts.get(key)
        self._counts[key] = _Count(1 if before is None else before.number + 1, last)
        if self._timer is None:
            self._timer = self._loop.call_later(EVERY, self.flush)
        return True

    def flush(self) -> None:
        """Write what was counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, {}
        for each in counts.values():
            self._write(each.last | {"count": each.number}, each.number)
