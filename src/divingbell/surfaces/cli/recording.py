"""Recording what a command does by itself, without a Divingbell that runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from divingbell.journal.events import JournalEvent

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
async def recorded(settings: "Settings") -> AsyncIterator[list[JournalEvent]]:
    """Write the events that the block puts into the list to the audit log, if there is one.

    Where the log can't be written, the block is not entered.

    Raises:
        NotRecorded: they can't be written.
        ConfigError: the settings can't be used.
    """
    events: list[JournalEvent] = []
    log = await _opened(settings)
    if log is None:
        yield events
        return
    try:
        await log.check()
        try:
            yield events
        finally:  # what has happened has happened, and a sign-in that has failed is an event, too
            for event in events:
                await log.keep(event)
    finally:
        await log.close()


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
