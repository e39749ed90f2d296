"""The audit log as a subscriber of the journal: nothing is done that it can't write down."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from divingbell import logs
from divingbell.audit.record_budget import RecordBudget
from divingbell.audit.records import Countable, Record, Records
from divingbell.audit.segments import now
from divingbell.audit.writer import Writer
from divingbell.errors import NotRecorded
from divingbell.journal.events import CallEnded, CellStarted, CommandStarted, Intent, JournalEvent
from divingbell.journal.journal import Kept
from divingbell.settings.audit import AuditMode
from divingbell.shares import weight

log = logs.logger("divingbell")

WRITE_TIMEOUT = 10.0
"""Seconds that a call waits for a disk that hangs."""


class AuditLog:
    """Keeps a record of what is done: a durable subscriber of the journal."""

    def __init__(self, mode: AuditMode, records: Records, writer: Writer) -> None:
        self._mode = mode
        self._records = records
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._budget = RecordBudget(records, writer.add)
        self._ended: deque[tuple[CallEnded, Callable[[float], object]]] = deque()
        """Calls that are over and have no record yet, with who is charged for that."""

    async def intend(self, event: Intent) -> None:
        """Write down what is about to be done. Code that runs calls nothing by that: unless the log
        is required, it does not wait.

        Raises:
            NotRecorded: it can't be written.
        """
        kept = await self.begin(event)
        if kept is not None:
            await kept()

    async def begin(self, event: Intent) -> Kept | None:
        """Begin to write down what is about to be done, and return what is to be waited for: the
        disk is at work on it then. Raises: as `intend`."""
        record = await self._record(event)
        if self._mode != "required" and isinstance(event, CellStarted | CommandStarted):
            self._writer.add(record)
            return None
        return partial(self._written, await self._handed_over(record))

    async def keep(self, event: JournalEvent) -> None:
        """Write down what is done outside of a session, before anybody sees its result.

        Raises:
            NotRecorded: it can't be written.
        """
        self._make_ended()
        record = self._records.of(event)
        if record is not None:
            await self._written(await self._handed_over(record))

    async def check(self) -> None:
        """Make sure that it can be written, by a record that says so, before something is changed
        of which only the outcome is recorded.

        Raises:
            NotRecorded: it can't.
        """
        await self._written(await self._handed_over({"at": now(), "kind": "log.checked"}))

    async def _handed_over(self, record: Record) -> "asyncio.Future[None]":
        with self._refusing():
            async with asyncio.timeout(WRITE_TIMEOUT):
                return await self._writer.begin(record)

    async def _written(self, done: "asyncio.Future[None]") -> None:
        with self._refusing():
            if done.done():  # what was made ready meanwhile took as long
                return done.result()
            async with asyncio.timeout(WRITE_TIMEOUT):
                await done

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            reason = f"its disk has not answered in {WRITE_TIMEOUT:g} s"
            self._writer.tell("can't be written", reason)
            raise _refusal(reason) from None
        except Exception as error:  # whatever it is: what was not written is not done
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise _refusal(reason) from error

    async def _record(self, event: Intent) -> Record:
        self._make_ended()
        # On the loop it is a part of the call's own step, which is charged for all that it takes.
        if self._records.is_long(event):
            made = await weight.in_thread(lambda: self._records.of(event))
        else:
            made = self._records.of(event)
        assert made is not None, "every intent has a record"
        return made

    def note(self, event: JournalEvent) -> None:
        """Have written down what has happened."""
        if isinstance(event, CallEnded):
            # Its answer goes first: whoever called waits for that, and nobody for the record.
            if not self._ended:
                self._loop.call_soon(self._make_ended)
            self._ended.append((event, weight.charging()))
            return
        self._make_ended()
        self._add(event)

    def _make_ended(self) -> None:
        """Make the records of calls that are over: before those of what came later."""
        while self._ended:
            event, charge = self._ended.popleft()
            began = time.thread_time()
            try:
                self._add(event)
            except Exception:
                log.exception("the end of a call was not recorded")
            charge(time.thread_time() - began)

    def _add(self, event: JournalEvent) -> None:
        if isinstance(event, Countable) and self._budget.takes(event):
            return
        record = self._records.of(event)
        if record is not None:
            self._writer.add(record)

    async def close(self) -> None:
        """Write what is left, and that this was all."""
        self._make_ended()
        self._budget.flush()
        await self._writer.close({"at": now(), "kind": "log.closed"})


def _refusal(reason: str) -> NotRecorded:
    # Models read this. Where the log is, the writer tells whoever runs Divingbell.
    return NotRecorded(
        f"the audit log can't be written ({reason}): whoever runs Divingbell has to make room for "
        "it"
    )
