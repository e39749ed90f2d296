"""Log lines of the journal: sessions, cells, commands and calls as they come to their ends.

No code, output, argument or value is in them.
"""

import logging

from divingbell import logs
from divingbell.amounts import amount
from divingbell.journal.events import (
    CallEnded,
    CellEnded,
    CellRefused,
    CommandEnded,
    ExecutionRefused,
    JournalEvent,
    Revealed,
    SessionEnded,
    SessionOpened,
    SkillRemoved,
    SkillSaved,
)
from divingbell.text import one_line

log = logs.logger("divingbell")

MAX_NAME = 100
"""Characters of the name of a tool, which is text of others."""


def write(event: JournalEvent) -> None:
    """Write a line about those events that have one."""
    if isinstance(event, SessionOpened):
        _write_session(event, "opened")
    elif isinstance(event, SessionEnded):
        _write_session(event, "closed")
    elif isinstance(event, CellEnded):
        _write_cell(event)
    elif isinstance(event, CellRefused):
        extra = logs.marks(event.principal, event.key, event.cell)
        log.info("session %s: cell %d: refused", event.key, event.cell, extra=extra)
    elif isinstance(event, ExecutionRefused):
        extra = logs.marks(event.principal, event.key)
        log.info("session %s: %s: refused, over its rate", event.key, event.kind, extra=extra)
    elif isinstance(event, CallEnded):
        _write_call(event)
    elif isinstance(event, CommandEnded):
        _write_command(event)
    elif isinstance(event, Revealed):
        _write_revealed(event)
    elif isinstance(event, SkillSaved | SkillRemoved):
        _write_skill(event)


def _write_session(event: SessionOpened | SessionEnded, what: str) -> None:
    whose = event.principal.user or "nobody"
    extra = logs.marks(event.principal, event.key)
    log.info("session %s of %s %s", event.session, whose, what, extra=extra)


def _write_cell(event: CellEnded) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    result = event.result
    how = "its caller has left" if result is None else result.status
    took = 0.0 if result is None else result.usage.wall_ms
    extra = logs.marks(event.principal, event.key, event.cell)
    log.info("session %s: cell %d: %s, %.0f ms", event.key, event.cell, how, took, extra=extra)


def _write_command(event: CommandEnded) -> None:
    how = event.result.status if event.result else "not started"
    extra = logs.marks(event.principal, event.key)
    log.info("session %s: command %d: %s", event.key, event.number, how, extra=extra)


def _write_revealed(event: Revealed) -> None:
    whose = event.principal.user or "nobody"
    extra = logs.marks(event.principal, None)
    count = amount(event.count, "value")
    log.info("%s of %s: revealed to a %s", count, whose, event.by, extra=extra)


def _write_skill(event: SkillSaved | SkillRemoved) -> None:
    whose = event.principal.user or "nobody"
    extra = logs.marks(event.principal, None)
    how = "removed"
    if isinstance(event, SkillSaved):
        how = f"version {event.version} saved ({event.origin})"
    log.info("skill %s of %s: %s", one_line(event.name, MAX_NAME), whose, how, extra=extra)


def _write_call(event: CallEnded) -> None:
    if not log.isEnabledFor(logging.DEBUG):
        return
    name = one_line(event.name, MAX_NAME)
    how = event.code or event.outcome
    extra = logs.marks(event.principal, event.key, event.cell, event.call)
    took = 1000 * event.seconds
    log.debug("session %s: %s: %s, %.0f ms", event.key, name, how, took, extra=extra)
