"""The audit log as a subscriber of the journal: nothing is done that it can't write down."""

import asyncio
from pathlib import Path

from divingbell.audit.records import Record, Records
from divingbell.audit.segments import now
from divingbell.audit.writer import Writer
from divingbell.errors import NotRecorded
from divingbell.journal.events import CallSent, Intent, JournalEvent
from divingbell.settings.audit import AuditMode
from divingbell.shares import weight

WRITE_TIMEOUT = 10.0
"""Seconds that a call waits for a disk that hangs."""


class AuditLog:
    """Keeps a record of what is done: a durable subscriber of the journal."""

    def __init__(self, mode: AuditMode, records: Records, writer: Writer, folder: Path) -> None:
        self._mode = mode
        self._records = records
        self._writer = writer
        self._folder = folder

    async def intend(self, event: Intent) -> None:
        """Write down what is about to be done. Code that runs calls nothing by that: unless the log
        is required, it does not wait.

        Raises:
            NotRecorded: it can't be written.
        """
        record = await self._record(event)
        if self._mode == "required" or isinstance(event, CallSent):
            await self._written(record)
        else:
            self._writer.add(record)

    async def keep(self, event: JournalEvent) -> None:
        """Write down what is done outside of a session, before anybody sees its result.

        Raises:
            NotRecorded: it can't be written.
        """
        record = self._records.of(event)
        if record is not None:
            await self._written(record)

    async def check(self) -> None:
        """Make sure that it can be written, by a record that says so, before something is changed
        of which only the outcome is recorded.

        Raises:
            NotRecorded: it can't.
        """
        await self._written({"at": now(), "kind": "log.checked"})

    async def _written(self, record: Record) -> None:
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                await self._writer.write(record)
        except TimeoutError:
            raise self._refusal(f"its disk has not answered in {WRITE_TIMEOUT:g} s") from None
        except Exception as error:  # whatever it is: what was not written is not done
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise self._refusal(reason) from error

    async def _record(self, event: Intent) -> Record:
        # On the loop it is a part of the call's own step, which is charged for all that it takes.
        if self._records.is_long(event):
            made = await weight.in_thread(lambda: self._records.of(event))
        else:
            made = self._records.of(event)
        assert made is not None, "every intent has a record"
        return made

    def note(self, event: JournalEvent) -> None:
        """Have written down what has happened."""
        record = self._records.of(event)
        if record is not None:
            self._writer.add(record)

    async def close(self) -> None:
        """Write what is left, and that this was all."""
        await self._writer.close({"at": now(), "kind": "log.closed"})

    def _refusal(self, reason: str) -> NotRecorded:
        return NotRecorded(
            f"the audit log can't be written ({reason}): whoever runs Divingbell has to make room "
            f"in {self._folder}, or to name another folder in [audit_log]"
        )
