"""Stumbles: failures of code over something that works elsewhere and not in the sandbox.

Only the kind of it is said, and a name. The host puts it into words, for it knows what there is
instead. All of this runs after a cell has failed; one that has not pays nothing.
"""

import errno
import importlib.util
import os
import re
import socket
import subprocess
import sys
import types
from collections.abc import Iterator

from divingbell_inside import layout, skills, tools

MAX_CHAIN = 8
UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)
REACHING_OUT = frozenset({"curl", "wget", "git", "ssh", "scp", "ping", "nc", "telnet", "ftp"})
INSTALLING = frozenset({"pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get", "npm"})
_MISCALLED = re.compile(r"(\w{1,100})\(\) (?:missing|got|takes) ")
_PLACE = re.compile(r'  File "(?:<frozen )?([^"]+?)(?:>|\.py)?", line \d')
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: (.{0,2000}))?")
_NO_MODULE = re.compile(r"No module named '(\w{1,200})")
_NO_FILE = re.compile(r": '(/[^']*)'$")
_NO_WAY_OUT = re.compile(rf"\[Errno (?:-\d+|{'|'.join(map(str, UNREACHABLE))})\]")
"""Errors below 0 are those of looking up a name."""
_KEY = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|_URL|_DSN")
_TOKEN = re.compile(r"[A-Z][A-Z0-9_]{1,23}_[1-9][0-9]{5,14}")
"""A word that stands for a value that the model was not shown, without its brackets."""
_OWN = (layout.WORKSPACE, layout.SERVERS, layout.HOME, layout.PROFILE, "/tmp", "/dev", "/proc")

Stumble = tuple[str, str]
"""Its kind, and the name of what it is about: of a module, of a tool."""


def stumble_of(error: BaseException) -> Stumble | None:
    """Return what the code has stumbled over, if it is something about this place."""
    try:
        for link in _chain(error):
            if (found := _found(link)) is not None:
                return found
    except Exception:  # of a hostile exception each attribute may fail
        return None
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it came from: libraries put their own around the network's."""
    links: list[object] = [error]
    seen: set[int] = set()
    while links and len(seen) < MAX_CHAIN:
        link = links.pop(0)
        if isinstance(link, BaseException) and id(link) not in seen:
            seen.add(id(link))
            yield link
            links += [link.__cause__, link.__context__, getattr(link, "reason", None)]


def _found(error: BaseException) -> Stumble | None:
    if isinstance(error, ModuleNotFoundError):
        return _missing_module(error)
    if isinstance(error, TypeError):
        return _miscalled(error)
    if isinstance(error, NameError):
        return _unquoted(error)
    if isinstance(error, KeyError):
        return _missing_key(error)
    if isinstance(error, OSError):
        return _refused(error)
    if isinstance(error, subprocess.CalledProcessError):
        return _failed_program(error)
    if isinstance(error, RuntimeError) and "running event loop" in str(error):
        return "loop", ""
    return None


def _missing_module(error: ModuleNotFoundError) -> Stumble | None:
    return _not_installed((error.name or "").partition(".")[0])


def _not_installed(name: str) -> Stumble | None:
    is_there = (
        not name
        or name in (tools.PACKAGE, skills.PACKAGE)
        or name in sys.modules  # some of which have no spec, and asking for it raises
        or importlib.util.find_spec(name) is not None
    )
    return None if is_there else ("module", name)


def _refused(error: OSError) -> Stumble | None:
    if isinstance(error, socket.gaierror) or error.errno in UNREACHABLE:
        return "network", ""
    if isinstance(error, PermissionError) and _raised_in(error) == "socket":
        return "network", ""
    path = error.filename
    if isinstance(error, FileNotFoundError) and isinstance(path, str) and path.startswith("/"):
        return None if path.startswith(_OWN) else ("file", "")
    return None


def _missing_key(error: KeyError) -> Stumble | None:
    in_environment = _raised_in(error) == "os"
    return ("key", "") if in_environment and _KEY.search(str(error).upper()) else None


def _unquoted(error: NameError) -> Stumble | None:
    """A token without quotes: Python reads a list with a variable in it."""
    name = error.name
    return ("token", name) if isinstance(name, str) and _TOKEN.fullmatch(name) else None


def _failed_program(error: subprocess.CalledProcessError) -> Stumble | None:
    command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
    return program_stumble(command)


def program_stumble(command: str) -> Stumble | None:
    """Return what a program that failed has stumbled over, by its command."""
    words = {os.path.basename(word) for word in command[:1000].split()[:8]}
    if words & INSTALLING:
        return "install", ""
    return ("network", "") if words & REACHING_OUT else None


def traceback_stumble(written: str) -> Stumble | None:
    """Return what a Python program has stumbled over, by the tracebacks that it has written.

    Those of errors that it came from stand before the last one, and count as well.
    """
    for kind, message, module in reversed(_raised(written)[-MAX_CHAIN:]):
        if (found := _written(kind, message, module)) is not None:
            return found
    return None


def _raised(written: str) -> list[tuple[str, str, str]]:
    """The exceptions in tracebacks: the type, the message, the module that raised it."""
    found, module = [], ""
    for line in written.splitlines():
        if place := _PLACE.match(line):
            module = os.path.basename(place[1])
        elif module and (raised := _RAISED.fullmatch(line)):
            found.append((raised[1].rpartition(".")[2], raised[2] or "", module))
            module = ""
    return found


def _written(kind: str, message: str, module: str) -> Stumble | None:
    if kind == "ModuleNotFoundError":
        name = _NO_MODULE.match(message)
        return None if name is None else _not_installed(name[1])
    if kind == "FileNotFoundError":
        path = _NO_FILE.search(message)
        return None if path is None or path[1].startswith(_OWN) else ("file", "")
    if kind == "KeyError" and module == "os":
        return ("key", "") if _KEY.search(message.upper()) else None
    is_barred = kind == "PermissionError" and module == "socket"
    return ("network", "") if is_barred or _NO_WAY_OUT.search(message) else None


def _miscalled(error: TypeError) -> Stumble | None:
    """A call of a tool's function with the wrong arguments: it has not begun to run."""
    match = _MISCALLED.match(str(error))
    frame = _last_frame(error)
    if match is None or frame is None:
        return None
    name = match[1]
    known = {
        full: module.__dict__.get(name)
        for full, module in list(sys.modules.items())
        if full.startswith(f"{tools.PACKAGE}.") and full.endswith(f".{name}") and module
    } | {name: (tools.NAMES | skills.NAMES).get(name)}
    meant = frame.f_locals.get(name, frame.f_globals.get(name))
    fitting = [full for full, function in known.items() if function is not None]
    if meant is not None:
        fitting = [full for full in fitting if known[full] is meant]
    return ("arguments", fitting[0]) if len(fitting) == 1 else None


def _raised_in(error: BaseException) -> object:
    """The name of the module whose code raised it."""
    frame = _last_frame(error)
    return None if frame is None else frame.f_globals.get("__name__")


def _last_frame(error: BaseException) -> types.FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame
