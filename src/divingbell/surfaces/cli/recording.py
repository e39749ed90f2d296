"""Recording what a command does by itself, without a Divingbell that runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from divingbell.journal.events import Intent, JournalEvent
from divingbell.journal.journal import Journal

if TYPE_CHECKING:
    from divingbell.audit.log import AuditLog
    from divingbell.settings.config import Settings


async def record(event: JournalEvent, settings: "Settings") -> None:
    """Write an event to the audit log, if there is one.

    Raises:
        NotRecorded: it can't be written.
        ConfigError: the settings can't be used.
    """
    log = await _opened(settings)
    if log is None:
        return
    try:
        await log.keep(event)
    finally:
        await log.close()


@asynccontextmanager
async def recorded(settings: "Settings", *, first: bool = False) -> AsyncIterator[Journal]:
    """A journal for the block, which the audit log keeps, if there is one: intents before they take
    effect, and what has happened when the block is over.

    With `first` the block is not entered where the log can't be written: it has no intent.

    Raises:
        NotRecorded: what has happened can't be written.
        ConfigError: the settings can't be used.
    """
    journal = Journal()
    log = await _opened(settings)
    if log is None:
        yield journal
        return
    happened = _Happened(log)
    journal.keep(happened)
    try:
        if first:
            await log.check()
        try:
            yield journal
        finally:  # what has happened has happened, and a sign-in that has failed is an event, too
            for event in happened.events:
                await log.keep(event)
    finally:
        await log.close()


class _Happened:
    """Gives intents to the log, and collects what has happened: a command says so where that can't
    be written."""

    def __init__(self, log: "AuditLog") -> None:
        self.events: list[JournalEvent] = []
        self._log = log

    async def intend(self, event: Intent) -> None:
        await self._log.intend(event)

    def note(self, event: JournalEvent) -> None:
        self.events.append(event)


async def _opened(settings: "Settings") -> "AuditLog | None":
    """Return the log of these settings. Where they say nothing, and a server of this user has a log
    already, it is that one: what a command changes is not to be missing in it."""
    from divingbell.audit import opening
    from divingbell.border.border import OpenBorder
    from divingbell.host.places import data_folder

    home = data_folder()
    if settings.audit is None and opening.places_of(settings.audit_log, home).log.is_dir():
        settings = replace(settings, audit="on")
    if settings.audit in (None, "off"):
        return None
    return await opening.opened(settings, OpenBorder(), home)
