"""The loggers of Divingbell. Every record of theirs says whose it is, for those who collect logs,
and no value of anyone is in it.

A record passes only the filters of the logger that it is made with, not those of the loggers above
it. So every module has its logger from here.
"""

import logging
from collections.abc import Callable
from typing import Any

from divingbell.principal import Principal

MARKS = ("bell_session", "bell_user", "bell_cell", "bell_call")
"""Attributes of a record. Each has a prefix: logging refuses one that somebody has set already."""

_screens: list[Callable[[str], str]] = []
_traceback = logging.Formatter().formatException


def logger(name: str) -> logging.Logger:
    """Return the logger of that name; its records have every mark, None where nothing is known."""
    found = logging.getLogger(name)
    found.addFilter(_complete)  # which is there once, however often it is added
    found.addFilter(without_values)
    return found


def screen_by(screen: Callable[[str], str]) -> None:
    """Have all that is logged from now on pass through a function; the same one counts once.

    What finds values is above this module, so that it is told from there.
    """
    if screen not in _screens:
        _screens.append(screen)


def screened(words: str) -> str:
    """Return words without what those who were told by `screen_by` take out. It never fails."""
    try:
        for screen in _screens:
            words = screen(words)
    except Exception as error:  # whatever it is: a line that was not screened is not written
        return f"[left out: it could not be searched for personal data ({type(error).__name__})]"
    return words


def marks(
    principal: Principal, key: str | None, cell: int | None = None, call: int | None = None
) -> dict[str, Any]:
    """Return the marks of a record: the key of a session, its user, a cell, a call."""
    return dict(zip(MARKS, (key, principal.user or None, cell, call), strict=True))


def _complete(record: logging.LogRecord) -> bool:
    for name in MARKS:
        record.__dict__.setdefault(name, None)
    return True


def without_values(record: logging.LogRecord) -> bool:
    """Take values of anyone out of a record, as a filter of a logger or handler: the message, the
    traceback and the marks."""
    try:
        said = record.getMessage()
    except Exception as error:  # logging would print the arguments, and what is wrong with them
        said = f"{record.msg} [its arguments do not fit: {type(error).__name__}]"
        record.args = None
    if (shown := screened(said)) != said or record.args is None:
        record.msg, record.args = shown, None
    _screen_traceback(record)
    for name in MARKS:
        if isinstance(value := record.__dict__.get(name), str):
            record.__dict__[name] = screened(value)
    return True


def _screen_traceback(record: logging.LogRecord) -> None:
    if record.exc_info and record.exc_info[0] is not None:
        told = record.exc_text or _traceback(record.exc_info)
        if (shown := screened(told)) != told:
            # Handlers of others would write the exception itself.
            record.exc_text, record.exc_info = shown, None
    if record.stack_info:
        record.stack_info = screened(record.stack_info)
