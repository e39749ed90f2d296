"""An event log: what happened in one run or conversation, numbered, for readers who come and go.

It is bounded. A reader who comes too late, or reads too slowly, is told how much is missing; nobody
who writes ever waits for one who reads.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import msgspec

MAX_BYTES = 4 << 20
"""Bytes of the events that one log keeps. The newest is kept however long it is."""
MAX_ENTRIES = 10_000
PULSE = 15.0
"""Seconds of silence after which a reader hears that nothing has come: nobody on the way to it
shall give up."""
ENTRY = 128
"""Bytes that an event takes beside what it tells. Measured; it may tell next to nothing."""
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: its number, its name, and what it tells as JSON."""

    number: int
    name: str
    data: bytes

    def frame(self) -> bytes:
        """Return it as a Server-Sent Event. JSON has no line breaks in it."""
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.name.encode(), self.data)


class EventLog:
    """Events of one run, from 1 on."""

    def __init__(self, most: int = MAX_BYTES, most_entries: int = MAX_ENTRIES) -> None:
        self._most = most
        self._most_entries = most_entries
        self._entries: deque[Entry] = deque()
        self._changed: asyncio.Event | None = None
        self.size = 0
        """Bytes that it keeps."""
        self.last = 0
        """The number of the newest event."""
        self.closed = False

    def add(self, name: str, told: Any) -> None:
        """Add an event; the oldest ones go where there are too many."""
        self.add_encoded(name, _ENCODER.encode(told))

    def add_encoded(self, name: str, data: bytes) -> None:
        """Add an event whose JSON is there already, in one line."""
        self.last += 1
        entry = Entry(self.last, name, data)
        self._entries.append(entry)
        self.size += len(entry.data) + ENTRY
        while len(self._entries) > 1 and self._is_full():
            self.size -= len(self._entries.popleft().data) + ENTRY
        self._wake()

    def close(self) -> None:
        """Say that no more will come."""
        self.closed = True
        self._wake()

    def entry(self, number: int) -> Entry | None:
        """Return one event, if it is still kept."""
        if not self._entries or not self._entries[0].number <= number <= self.last:
            return None
        return self._entries[number - self._entries[0].number]

    async def follow(self, after: int = 0) -> AsyncGenerator[Entry | None, None]:
        """Yield the events after a number as they come, until there are no more.

        An event `gap` stands for those that were kept no longer; its number is that of the last
        of them. None is yielded after each `PULSE` seconds of silence.
        """
        while True:
            entry = self._next(after)
            if entry is not None:
                after = entry.number
                yield entry
            elif self.closed:
                return
            else:
                if self._changed is None:
                    self._changed = asyncio.Event()
                try:
                    async with asyncio.timeout(PULSE):
                        await self._changed.wait()
                except TimeoutError:
                    yield None

    def _next(self, after: int) -> Entry | None:
        if after >= self.last:
            return None
        first = self._entries[0].number
        if after + 1 < first:
            missed = first - 1 - after
            return Entry(first - 1, "gap", _ENCODER.encode({"missed": missed}))
        return self._entries[after + 1 - first]

    def _is_full(self) -> bool:
        return self.size > self._most or len(self._entries) > self._most_entries

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()
