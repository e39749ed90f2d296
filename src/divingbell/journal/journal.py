"""The journal: everything that happens is told here once, to all who subscribe.

What can change or refuse something is a step on its way, not a subscriber; the one exception is a
subscriber that has to write an intent down before it takes effect, and can't.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from divingbell import logs
from divingbell.errors import NotRecorded
from divingbell.journal.events import (
    CallEnded,
    CellEnded,
    CellRefused,
    CellStarted,
    CommandEnded,
    CommandStarted,
    Intent,
    JournalEvent,
)

log = logs.logger("divingbell")

MOST_KEPT = 1_000
"""Events that wait for a follower who is slow; those that come then are dropped, and counted."""
MOST_BYTES = 16 << 20
"""Of what these refer to: code, arguments and results."""

Watcher = Callable[[JournalEvent], None]
"""Takes an event at once, on the event loop: in microseconds, and without keeping it all."""


Kept = Callable[[], Awaitable[None]]
"""Returns once an intent is kept. Raises: NotRecorded, if it can't be."""


class Durable(Protocol):
    """A subscriber that keeps everything."""

    async def intend(self, event: Intent) -> None:
        """Keep an intent before it takes effect.

        Raises:
            NotRecorded: it can't be kept, so what is intended is not done.
        """

    def note(self, event: JournalEvent) -> None:
        """Take what has happened, to be kept soon."""


@runtime_checkable
class Overlapping(Durable, Protocol):
    """A durable subscriber that takes its time, in which a call can be made ready."""

    async def begin(self, event: Intent) -> Kept | None:
        """Begin to keep an intent. What is returned must be waited for before it takes effect.

        Raises:
            NotRecorded: it can't be kept, so what is intended is not done.
        """


@dataclass(frozen=True, slots=True)
class Dropped:
    """A gap in a feed: so many events were dropped, as their reader was too slow."""

    count: int


class Feed:
    """Events as they come, for a reader who may be slow. It ends when it is closed."""

    def __init__(self, most: int, on_close: Callable[[], None]) -> None:
        self._most = most
        self._on_close = on_close
        self._waiting: deque[JournalEvent] = deque()
        self._bytes = 0
        self._dropped = 0
        self._more = asyncio.Event()
        self._closed = False

    def take(self, event: JournalEvent) -> None:
        size = _size_of(event)
        if len(self._waiting) >= self._most or self._bytes + size > MOST_BYTES:
            self._dropped += 1
        else:
            self._waiting.append(event)
            self._bytes += size
        self._more.set()

    def close(self) -> None:
        """End it; what waits can still be read."""
        if not self._closed:
            self._closed = True
            self._on_close()
            self._more.set()

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> JournalEvent | Dropped:
        while not self._waiting and not self._dropped and not self._closed:
            self._more.clear()
            await self._more.wait()
        if self._waiting:
            event = self._waiting.popleft()
            self._bytes -= _size_of(event)
            return event
        if self._dropped:
            count, self._dropped = self._dropped, 0
            return Dropped(count)
        raise StopAsyncIteration


def _size_of(event: JournalEvent) -> int:
    """Bytes that an event keeps from being freed, about."""
    if isinstance(event, CallEnded):
        return len(event.raw) + 2 * len(event.body)  # the result itself is as large as its body
    if isinstance(event, CellEnded):
        outputs = () if event.result is None else event.result.outputs
        return len(event.code) + sum(len(output.data) for output in outputs)
    if isinstance(event, CommandEnded):
        shown = (event.result.stdout, event.result.stderr) if event.result else ()
        return len(event.command) + sum(map(len, shown))
    if isinstance(event, CommandStarted):
        return len(event.command)
    return len(event.code) if isinstance(event, CellStarted | CellRefused) else 0


class Journal:
    """Tells events to subscribers, in the order in which they happen."""

    def __init__(self) -> None:
        self._durable: tuple[Durable, ...] = ()
        self._beginnings: tuple[Callable[[Intent], Awaitable[Kept | None]], ...] = ()
        self._watchers: tuple[Watcher, ...] = ()
        self.unrecorded = 0
        """How many intents could not be kept, so that nothing was done."""

    def keep(self, subscriber: Durable) -> Callable[[], None]:
        """Tell a durable subscriber from now on; returns the undo."""
        self._set_durable((*self._durable, subscriber))

        def undo() -> None:
            self._set_durable(tuple(each for each in self._durable if each is not subscriber))

        return undo

    def _set_durable(self, subscribers: tuple[Durable, ...]) -> None:
        self._durable = subscribers
        self._beginnings = tuple(
            each.begin if isinstance(each, Overlapping) else each.intend for each in subscribers
        )

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call back with each event from now on; returns the undo. What it raises is logged."""
        self._watchers += (watcher,)

        def undo() -> None:
            # By equality: a bound method is another object each time it is looked up.
            self._watchers = tuple(each for each in self._watchers if each != watcher)

        return undo

    def follow(self, most: int = MOST_KEPT) -> Feed:
        """Return the events from now on, for a reader who may be slow."""
        feed = Feed(most, lambda: undo())
        undo = self.watch(feed.take)
        return feed

    async def intend(self, event: Intent) -> None:
        """Tell what is about to be done, once the durable subscribers have it.

        Raises:
            NotRecorded: one of them can't keep it; then it must not be done.
        """
        kept = await self.begin(event)
        await kept()

    async def begin(self, event: Intent) -> Kept:
        """Give durable subscribers what is about to be done; what is returned must be waited for
        before it is done, and tells the others.

        Raises:
            NotRecorded: one of them can't keep it; then it must not be done.
        """
        waiting: list[Kept] = []
        for begin in self._beginnings:
            with self._or_not_recorded():
                if (kept := await begin(event)) is not None:
                    waiting.append(kept)
        is_told = False

        async def all_kept() -> None:
            nonlocal is_told
            for kept in waiting:
                with self._or_not_recorded():
                    await kept()
            if not is_told:
                is_told = True
                self._pass_to_watchers(event)

        return all_kept

    @contextlib.contextmanager
    def _or_not_recorded(self) -> Iterator[None]:
        """Whatever a durable subscriber raises: the intent is not kept."""
        try:
            yield
        except NotRecorded:
            self.unrecorded += 1
            raise
        except Exception as error:
            self.unrecorded += 1
            log.exception("an intent was not kept")
            raise NotRecorded(f"it could not be recorded: {type(error).__name__}") from error

    def note(self, event: JournalEvent) -> None:
        """Tell what has happened."""
        for subscriber in self._durable:
            try:
                subscriber.note(event)
            except Exception:  # its own trouble: what has happened has happened
                log.exception("an event was not kept")
        self._pass_to_watchers(event)

    def _pass_to_watchers(self, event: JournalEvent) -> None:
        for watcher in self._watchers:
            try:
                watcher(event)
            except Exception:  # whoever only observes costs nobody anything
                log.exception("a subscriber of the journal failed")
