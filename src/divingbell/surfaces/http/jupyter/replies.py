"""Replies to requests that run no code."""

from importlib.metadata import version
from platform import python_version
from typing import Any

import msgspec

from divingbell.session.base import SessionHandle
from divingbell.surfaces.http.jupyter.messages import REQUEST, VERSION, Request, Word
from divingbell.syntax import parsed

KERNEL = "python3"
"""The name that notebooks know a kernel of Python by, so that any of them finds this one."""
DISPLAY_NAME = "Python 3 (Divingbell)"
OUR_VERSION = version("divingbell")
MAX_PARSED = 2 << 10
"""Characters of code that is parsed to see whether it is complete. Parsing is one call of C on the
event loop; a person at a console types less."""
UNFINISHED = ("never closed", "expected an indented block", "triple-quoted", "unexpected EOF")
"""Words of Python about code that only has no end yet."""
NO_WIDGETS = "Divingbell has no comms, so widgets can't be shown: show a figure or a table instead"
"""Widgets would have code of the sandbox talk to code of the page, in both directions."""


class Complete(msgspec.Struct):
    """A question how code could go on."""

    code: str
    cursor_pos: int | None = None


class IsComplete(msgspec.Struct):
    """A question whether code is to be run, or goes on in the next line."""

    code: str


class Comm(msgspec.Struct):
    """A message to or from a widget."""

    comm_id: Word = ""


class Shutdown(msgspec.Struct):
    """A wish to end a kernel, or to begin with a fresh one."""

    restart: bool = False


def kernel_spec() -> dict[str, Any]:
    """Return the description of the one kind of kernel that there is."""
    return {
        "name": KERNEL,
        "spec": {
            "argv": [],
            "env": {},
            "display_name": DISPLAY_NAME,
            "language": "python",
            "interrupt_mode": "message",
            "metadata": {"debugger": False},
        },
        "resources": {},
    }


def kernel_info(python: str) -> dict[str, Any]:
    """Return what a kernel says about itself; `python` is the version that code runs under."""
    return {
        "status": "ok",
        "protocol_version": VERSION,
        "implementation": "divingbell",
        "implementation_version": OUR_VERSION,
        "language_info": {
            "name": "python",
            "version": python,
            "mimetype": "text/x-python",
            "file_extension": ".py",
            "pygments_lexer": "ipython3",
            "codemirror_mode": {"name": "ipython", "version": 3},
            "nbconvert_exporter": "python",
        },
        "banner": f"Divingbell {OUR_VERSION}, Python {python}, in a sealed sandbox",
        "help_links": [],
        "debugger": False,
        "supported_features": [],
    }


async def reply(session: SessionHandle, request: Request) -> dict[str, Any] | None:
    """Return the content of the reply to a request that changes nothing; None for no request.

    Raises:
        BadMessage: its content can't be read.
        DivingbellError: the session can't answer.
    """
    if request.kind == "kernel_info_request":
        return kernel_info(python_version())
    if request.kind == "complete_request":
        return await completions(session, await request.read(Complete))
    if request.kind == "is_complete_request":
        return completeness((await request.read(IsComplete)).code)
    if request.kind == "history_request":
        return {"status": "ok", "history": []}
    if request.kind == "comm_info_request":
        return {"status": "ok", "comms": {}}
    if request.kind.endswith(REQUEST):
        return unsupported(f"Divingbell does not do {request.kind}")
    return None


async def completions(session: SessionHandle, asked: Complete) -> dict[str, Any]:
    """Return how code could go on. Raises: see `SessionHandle.complete`."""
    end = len(asked.code)
    at = end if asked.cursor_pos is None else min(max(0, asked.cursor_pos), end)
    found = await session.complete(asked.code, at)
    start, end = (found[0].start, found[0].end) if found else (at, at)
    return {
        "status": "ok",
        "matches": [each.text for each in found if (each.start, each.end) == (start, end)],
        "cursor_start": start,
        "cursor_end": end,
        "metadata": {},
    }


def completeness(code: str) -> dict[str, Any]:
    """Return whether code is complete, or `unknown` for what is long or no plain Python."""
    if len(code) > MAX_PARSED or code.lstrip().startswith(("%", "!", "?")):
        return {"status": "unknown"}
    try:
        statements = parsed(code).body
    except SyntaxError as error:
        is_open = any(words in str(error.msg) for words in UNFINISHED)
        return {"status": "incomplete", "indent": ""} if is_open else {"status": "invalid"}
    except (ValueError, MemoryError, RecursionError):
        return {"status": "invalid"}
    in_block = bool(statements) and hasattr(statements[-1], "body") and not code.endswith("\n")
    return {"status": "incomplete", "indent": "    "} if in_block else {"status": "complete"}


def unsupported(words: str, kind: str = "NotSupported") -> dict[str, Any]:
    """Return the reply to a request that is not done, and why."""
    return {"status": "error", "ename": kind, "evalue": words, "traceback": []}
