"""The events of the journal, for `Divingbell(on_event=…)` and `bell.journal`."""

from divingbell.journal.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallDecided,
    CallEnded,
    CallRequested,
    CallSent,
    CellEnded,
    CellStarted,
    CommandEnded,
    CommandStarted,
    Intent,
    JournalEvent,
    ServerDown,
    ServerUp,
    SessionEnded,
    SessionOpened,
    SignedIn,
)
from divingbell.journal.journal import Dropped

__all__ = [
    "ApprovalAnswered",
    "ApprovalAsked",
    "CallDecided",
    "CallEnded",
    "CallRequested",
    "CallSent",
    "CellEnded",
    "CellStarted",
    "CommandEnded",
    "CommandStarted",
    "Dropped",
    "Intent",
    "JournalEvent",
    "ServerDown",
    "ServerUp",
    "SessionEnded",
    "SessionOpened",
    "SignedIn",
]
