"""Log lines of the journal: sessions as they come and go, and their commands."""

import logging

from divingbell.journal.events import (
    CommandEnded,
    CommandStarted,
    JournalEvent,
    SessionEnded,
    SessionOpened,
)

log = logging.getLogger("divingbell")


def write(event: JournalEvent) -> None:
    """Write a line about those events that have one."""
    if isinstance(event, SessionOpened):
        log.info("session %s of %s opened", event.session, event.principal.user or "nobody")
    elif isinstance(event, SessionEnded):
        log.info("session %s of %s closed", event.session, event.principal.user or "nobody")
    elif isinstance(event, CommandStarted):
        log.info("command %d of session %s starts", event.number, event.key)
    elif isinstance(event, CommandEnded):
        status = event.result.status if event.result else "not started"
        log.info("command %d of session %s: %s", event.number, event.key, status)
