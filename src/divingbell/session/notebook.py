"""Sessions as a notebook shows them: small tables of HTML, with all text escaped."""

from collections.abc import Sequence
from html import escape

from divingbell import notebook
from divingbell.session.base import SessionHandle

MOST_ROWS = 50
_HEADS = ("session", "user", "cells", "state", "labels")


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: 1 cell, 2 cells."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def state_of(session: SessionHandle) -> str:
    """Return a word for how a session is: idle, busy or ended."""
    if session.closed:
        return "ended"
    return "busy" if session.busy else "idle"


def described(session: SessionHandle) -> str:
    """Return one line about a session, without anything that ran in it."""
    of = f" of {session.user!r}" if session.user else ""
    cells = counted(session.cells, "cell")
    return f"<Session {session.id!r}{of}: {cells}, {state_of(session)}>"


def table(title: str, sessions: Sequence[SessionHandle]) -> str:
    """Return a table of sessions, with a line that counts those that are left out."""
    rows = [_row(session) for session in sessions[:MOST_ROWS]]
    left = len(sessions) - len(rows)
    more = f"<p>and {counted(left, 'session')} more</p>" if left > 0 else ""
    head = notebook.cells(_HEADS, "th")
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{''.join(rows)}</table>{more}"


def _row(session: SessionHandle) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in session.labels.items())
    shown = (session.id, session.user or "", str(session.cells), state_of(session), labels)
    return f"<tr>{notebook.cells(shown, 'td')}</tr>"
