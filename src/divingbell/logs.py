"""The loggers of Divingbell. Every record of theirs says whose it is, for those who collect logs.

A record passes only the filters of the logger that it is made with, not those of the loggers above
it. So every module has its logger from here.
"""

import logging
from typing import Any

from divingbell.principal import Principal

MARKS = ("bell_session", "bell_user", "bell_cell", "bell_call")
"""Attributes of a record. Each has a prefix: logging refuses one that somebody has set already."""


def logger(name: str) -> logging.Logger:
    """Return the logger of that name; its records have every mark, None where nothing is known."""
    found = logging.getLogger(name)
    found.addFilter(_complete)  # which is there once, however often it is added
    return found


def marks(
    principal: Principal, key: str | None, cell: int | None = None, call: int | None = None
) -> dict[str, Any]:
    """Return the marks of a record: the key of a session, its user, a cell, a call."""
    return dict(zip(MARKS, (key, principal.user or None, cell, call), strict=True))


def _complete(record: logging.LogRecord) -> bool:
    for name in MARKS:
        record.__dict__.setdefault(name, None)
    return True
