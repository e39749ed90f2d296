"""Failures as the model should read them: the user's own lines, cut to a bearable length."""

import errno
import linecache
import os
import sys
import traceback
from typing import Any

from divingbell_inside import display, layout, stumbles

CELL_FILE = "<cell {}>"
MAX_TRACEBACK = 20_000
MAX_MESSAGE = 10_000
MAX_CHAIN = 8
_HERE = os.path.dirname(os.path.abspath(__file__))
_USERS = ("<cell ", "<skill ", layout.WORKSPACE + "/", "/tmp/", layout.HOME + "/")


def describe(error: BaseException) -> dict[str, Any]:
    """Return type, message, traceback, the limit that was hit, and what it stumbled over here."""
    return {
        "type": type(error).__name__[:200],
        "message": _message(error),
        "traceback": display.cut(_traceback(error), MAX_TRACEBACK),
        "limit": _limit(error),
        "stumble": stumbles.stumble_of(error),
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as second:
        text = f"<str() of the exception failed: {type(second).__name__}>"
    return display.cut(_clean(text), MAX_MESSAGE)


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _limit(error: BaseException) -> str | None:
    """Return the limit that an exception stands for, if it does."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return "disk"
        if error.errno == errno.ENOMEM:
            return "memory"
        if error.errno == errno.EAGAIN and _was_forking(error):
            return "processes"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "processes"
    return None


def _was_forking(error: BaseException) -> bool:
    """Whether the code that failed was starting a process (EAGAIN has other meanings too)."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return any(word in line for word in ("fork", "spawn", "system", "popen"))


def _traceback(error: BaseException) -> str:
    _shorten_messages(error)
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        _keep_user_frames(report, 0)
        return _clean("".join(report.format()))
    except Exception as second:  # a hostile exception class can break the standard formatter
        return f"{type(error).__name__} (its traceback can't be shown: {type(second).__name__})\n"


def _shorten_messages(error: BaseException) -> None:
    """A message of 100 MB would be formatted several times over: cut the plain ones first."""
    seen = 0
    link: BaseException | None = error
    while link is not None and seen < MAX_CHAIN:
        if type(link).__str__ is BaseException.__str__ and any(
            type(argument) is str and len(argument) > MAX_MESSAGE for argument in link.args
        ):
            link.args = tuple(
                display.cut(argument, MAX_MESSAGE) if type(argument) is str else argument
                for argument in link.args
            )
        seen += 1
        link = link.__cause__ or link.__context__


def _keep_user_frames(report: Any, depth: int) -> None:
    """Leave out the frames of this package and of libraries; say how many, and whose."""
    kept = [frame for frame in report.stack if frame.filename.startswith(_USERS)]
    hidden: dict[str, int] = {}
    for frame in report.stack:
        if not frame.filename.startswith((*_USERS, _HERE)):
            name = _package(frame.filename)
            hidden[name] = hidden.get(name, 0) + 1
    if hidden and (kept or not depth):  # else a library's own cause: its message is enough
        listed = ", ".join(f"{count} in {name}" for name, count in hidden.items())
        _add_note(report, f"(frames left out: {listed})")
    if kept:
        report.stack[:] = kept
    else:
        report.stack = None
    if depth >= MAX_CHAIN:
        report.__cause__ = report.__context__ = None
    for other in (report.__cause__, report.__context__, *(_group_of(report) or ())):
        if other is not None:
            _keep_user_frames(other, depth + 1)


def _group_of(report: Any) -> list[Any] | None:
    members: list[Any] | None = getattr(report, "exceptions", None)
    return members


def _add_note(report: Any, note: str) -> None:
    notes = getattr(report, "__notes__", None)
    report.__notes__ = [*(notes if isinstance(notes, list) else []), note]


def _package(filename: str) -> str:
    parts = filename.split("/")
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return parts[parts.index(folder) + 1].removesuffix(".py")
    return "the standard library" if filename.startswith((sys.base_prefix, "<frozen")) else filename
