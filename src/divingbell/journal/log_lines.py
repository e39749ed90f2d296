"""Log lines of the journal: sessions as they come and go."""

import logging

from divingbell.journal.events import JournalEvent, SessionEnded, SessionOpened

log = logging.getLogger("divingbell")


def write(event: JournalEvent) -> None:
    """Write a line about those events that have one."""
    if isinstance(event, SessionOpened):
        log.info("session %s of %s opened", event.session, event.principal.user or "nobody")
    elif isinstance(event, SessionEnded):
        log.info("session %s of %s closed", event.session, event.principal.user or "nobody")
