"""The writer: a thread that writes records to the log, with one sync for all that wait."""

import asyncio
import contextlib
import queue
import threading
import time
from typing import NamedTuple

from divingbell import logs
from divingbell.audit.chain import written
from divingbell.audit.heads import Heads
from divingbell.audit.segments import Record, Segments, now
from divingbell.shares import loop_thread

log = logs.logger("divingbell")

SOON = 0.05
"""Seconds that what has happened waits for others to be written with it."""
HEAD_EVERY = 1.0
"""Seconds between two heads, while there is something new to sign."""
MOST_WAITING = 10_000
"""Records that wait while the disk is full; those that come then are dropped, and counted."""
CLOSE_TIMEOUT = 5.0
PAUSE = 1.0
"""Seconds between two tries to write what has happened, after one has failed."""
TOLD_EVERY = 60.0
"""Seconds between two warnings about the same trouble."""


class Entry(NamedTuple):
    """A record that is to be written, and whoever waits for it."""

    record: str
    """As JSON, made where the record was: a call waits for whatever the thread does."""
    waiter: "asyncio.Future[None] | None" = None

    def is_wanted(self, error: Exception | None) -> bool:
        """Return whether it is to be written: not what nobody waits for any more, nor what is
        refused in any case."""
        return self.waiter is None or (error is None and not self.waiter.cancelled())


class Writer:
    """Writes records in a thread. Its methods are for one event loop.

    `heads` are None where there is no key to sign with. With `strict`, records count as written
    only while heads can be written, too.
    """

    def __init__(self, segments: Segments, heads: Heads | None, *, strict: bool = False) -> None:
        self._segments = segments
        self._heads = heads
        self._strict = strict
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        # No Condition: whoever is woken by one has to wait for its lock, which is another switch.
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._entries: list[Entry] = []
        self._is_writing = False
        self._begun: asyncio.Future[None] | None = None
        """Done when the thread begins to write; there is one while it is to be woken."""
        self._dropped = 0
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._head_at = 0.0
        self._head_error: OSError | None = None
        self._told_at: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="divingbell-audit", daemon=True)
        self._thread.start()

    # For the event loop

    async def begin(self, record: Record) -> "asyncio.Future[None]":
        """Hand a record over; what is returned is done once it is on the disk, with all that came
        before it, or has the OSError for which it can't be written, and is not kept.

        It returns when the thread waits for the disk: whoever goes on before that keeps the
        interpreter from it, and nothing is done at the same time.

        Raises:
            OSError: it is closed.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        entry = Entry(written(record), done)
        begun = None
        with self._guard:
            if self._closing:
                raise OSError(0, "it is closed")
            if self._begun is None and not self._is_writing:
                begun = self._begun = self._loop.create_future()
            self._entries.append(entry)
        self._signals.put(None)
        if begun is not None:
            try:
                await begun
            except asyncio.CancelledError:
                done.cancel()  # nobody waits for it: it is not to be written
                raise
        return done

    def add(self, record: Record, stands_for: int = 1) -> None:
        """Have a record written soon, which stands for so many."""
        with self._guard:
            if len(self._entries) >= MOST_WAITING or self._closing:
                self._dropped += stands_for
                return
            self._entries.append(Entry(written(record)))
        if self._timer is None:
            self._timer = self._loop.call_later(SOON, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._signals.put(None)

    async def close(self, last: Record) -> None:
        """Write what waits, and this; then end the thread, if it does not hang."""
        if self._timer is not None:
            self._timer.cancel()
        with self._guard:
            self._entries.append(Entry(written(last)))
            self._closing = True
        self._signals.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT)
        if self._thread.is_alive() or self._entries:
            log.warning(
                "the audit log in %s was not written to its end: look at its disk",
                self._segments.folder,
            )

    # In the thread

    def _run(self) -> None:
        loop_thread.go_first()  # calls wait for it
        while True:
            with contextlib.suppress(queue.Empty):
                self._signals.get(timeout=self._patience())
            with self._guard:
                entries, self._entries = self._entries, []
                closing = self._closing
                begun, self._begun = self._begun, None
                self._is_writing = True
            self._write(entries, begun)
            self._write_head(at_once=closing)
            self._is_writing = False
            if closing:
                break
        self._segments.close()
        if self._heads is not None:
            self._heads.close()

    def _patience(self) -> float | None:
        """Seconds until something is to be done of its own accord."""
        if self._entries:
            return PAUSE
        if self._heads is not None and self._heads.last != self._segments.end:
            return max(0.0, self._head_at + HEAD_EVERY - time.monotonic())
        return None

    def _write(self, entries: list[Entry], begun: "asyncio.Future[None] | None") -> None:
        """Write records in the order in which they came, with one sync for all."""
        if not entries:
            return
        told = [] if begun is None else [begun]

        def waits_for_disk() -> None:
            if told:
                self._resolve([told.pop()], None)

        if not self._segments.is_begun:
            waits_for_disk()
        error = self._chain_begun()
        gap = self._dropped
        batch: list[Record | str] = [each.record for each in entries if each.is_wanted(error)]
        if gap:  # before the last record: nothing comes after `log.closed`
            batch.insert(len(batch) - 1, {"at": now(), "kind": "log.gap", "count": gap})
        kept: list[Entry] = []
        try:
            if batch:
                self._segments.write(batch, waits_for_disk)
        except Exception as failure:  # whatever it is, nothing of it was kept
            error, gap = failure, 0
            kept = [each for each in entries if each.waiter is None]
            self.tell("can't be written", failure)
        with self._guard:
            self._entries = kept + self._entries
            self._dropped -= gap
        waiters = [each.waiter for each in entries if each.waiter is not None]
        if waiters:
            self._resolve(waiters, error)
        waits_for_disk()  # where it came to no write at all

    def _resolve(self, waiters: "list[asyncio.Future[None]]", error: Exception | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_resolve, waiters, error)

    def _chain_begun(self) -> Exception | None:
        """Begin the chain, and sign that before anything else is written: whoever is killed at once
        has a head. Return what refuses intents, where the second place has to be there."""
        if not self._segments.is_begun:
            try:
                self._segments.begin()
                self._write_head(at_once=True)
            except OSError as error:
                log.debug("the chain can't be begun yet: %s", error)  # the batch fails, and tells
        return self._head_error if self._strict else None

    def _write_head(self, *, at_once: bool) -> None:
        if self._heads is None or self._heads.last == self._segments.end:
            return
        if not at_once and time.monotonic() < self._head_at + HEAD_EVERY:
            return
        self._head_at = time.monotonic()
        try:
            self._heads.write(self._segments.end)
            self._head_error = None
        except OSError as error:
            self._head_error = error
            self.tell(f"has no place for its heads in {self._heads.folder}", error)

    def tell(self, words: str, error: Exception | str) -> None:
        """Tell whoever runs this of some trouble, once in a while."""
        moment = time.monotonic()
        if moment >= self._told_at.get(words, -TOLD_EVERY) + TOLD_EVERY:
            self._told_at[words] = moment
            log.warning(
                "the audit log in %s %s: %s; make room, or name another folder in [audit_log]",
                self._segments.folder,
                words,
                getattr(error, "strerror", None) or error,
            )


def _resolve(waiting: "list[asyncio.Future[None]]", error: Exception | None) -> None:
    for done in waiting:
        if done.done():  # its caller has left
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            done.exception()  # a caller that has left will not ask
