"""The budget for records of what costs its sender nothing, and so may come in any number: refusals,
questions to Divingbell itself such as searches, and approvals. Some of each user are written one by
one, and the others are counted."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from divingbell.audit.records import Approval, Countable, Record, Records, Sort
from divingbell.shares.buckets import Buckets

ONE_BY_ONE, WITHIN = 60, 60.0
"""Of a user, those that have a record each, in that many seconds: of each sort as many, so that one
of them leaves the others their room."""
EVERY = 1.0
"""Seconds after which those that were counted are written."""
MOST_COUNTS = 1_000
"""Counts that are kept at once; beyond them, all users share those of nobody in particular."""


@dataclass(slots=True)
class _Count:
    number: int
    last: Record


class RecordBudget:
    """Counts what comes beyond a rate, and gives a record of it to `write` each second, with the
    number of events that it stands for. For one event loop."""

    def __init__(self, records: Records, write: Callable[[Record, int], None]) -> None:
        self._records = records
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._buckets = {
            sort: Buckets(ONE_BY_ONE, WITHIN, time.monotonic) for sort in get_args(Sort)
        }
        self._counts: dict[tuple[str, str, str, str], _Count] = {}
        self._timer: asyncio.TimerHandle | None = None

    def takes(self, event: Countable) -> bool:
        """Count an event, if it is of a sort that is counted and its user has had enough records of
        their own; return whether so."""
        sort = self._records.sort_of(event)
        if sort is None:
            return False
        user = event.user if isinstance(event, Approval) else event.principal.user
        buckets = self._buckets[sort]
        if not buckets.wait(user, 1.0):
            buckets.take(user, 1.0)
            return False
        last = self._records.in_short(event)
        said = (str(last["kind"]), str(last.get("outcome")), str(last.get("answer")))
        key = (user, *said)
        if key not in self._counts and len(self._counts) >= MOST_COUNTS:
            key = ("", *said)
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
