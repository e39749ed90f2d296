"""Variables that the host sets and gets: the part of it that runs in the session.

What is small travels with the request and its answer. What is not is a file in the workspace, that
whoever reads it removes.
"""

import contextlib
import difflib
import errno
import os
from collections.abc import Collection, Iterator
from typing import Any

from divingbell_inside import columns, frames, layout, parcels, table_files

OPERATIONS = ("set", "get", "room")
MAX_NAMES = 1000
"""Variables that a name which is missing is compared with."""
MAX_REASON = 500

Names = dict[str, Any]
Answer = tuple[list[Any], bytes]


class Refused(Exception):
    """Raised for a request that can't be granted; the message says why, and what to do."""


def answer(names: Names, own: Collection[str], header: frames.Header, body: bytes) -> Answer:
    """Do what the host asks for; `own` are names that are not the user's.

    Returns:
        One item, that says what was done or why it was not; and the value, if it is small.
    """
    try:
        if header["op"] == "room":
            return [{"free": _free()}], b""
        if header["op"] == "set":
            return _set(names, own, header, body)
        return _get(names, own, header)
    except (Refused, columns.NotHeld) as error:
        reason = str(error)
    except columns.Broken as error:
        reason = f"the packages of the session can't hold it ({error}): use other types, or less"
    except MemoryError:
        reason = "it does not fit into the session's memory: pass less, or raise the limit memory"
    except OSError as error:
        reason = f"the session's disk can't take it: {os.strerror(error.errno or errno.EIO)}"
    except Exception as error:  # of a library, or of an object of the user's
        reason = f"{type(error).__name__}: {error}"
    return [{"refused": reason[:MAX_REASON].encode("utf-8", "backslashreplace").decode()}], b""


def _set(names: Names, own: Collection[str], header: frames.Header, body: bytes) -> Answer:
    name, path = header["name"], header["path"]
    if name in own:
        raise Refused(f"{name!r} is a name of the session's own: choose another")
    if not path:
        names[name] = parcels.unpack(columns.Reader(bytearray(body)))
        return [{"done": True}], b""
    full = os.path.join(layout.WORKSPACE, path)
    try:
        if header["format"] is not None:
            names[name] = table_files.read(full, header["format"])
        else:
            names[name] = parcels.unpack(columns.Reader(_content(full)))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(full)
    return [{"done": True}], b""


def _content(path: str) -> bytearray:
    """Return a file in memory that can be written to: arrays are made of it without a copy."""
    data = bytearray(os.path.getsize(path))
    with open(path, "rb", buffering=0) as file:
        view = memoryview(data)
        while view and (count := file.readinto(view)):
            view = view[count:]
    return data


def _get(names: Names, own: Collection[str], header: frames.Header) -> Answer:
    name = header["name"]
    if name not in names:
        raise Refused(_missing(name, names, own))
    value = names[name]
    full = os.path.join(layout.WORKSPACE, header["path"])
    if header["format"] is not None:
        with _new_file(full):
            table_files.write(value, full, header["format"])
            size = os.path.getsize(full)
            _check_size(size, header["most"])
        return [{"size": size, "file": True}], b""
    pieces = parcels.pack(value)
    size = sum(map(len, pieces))
    _check_size(size, header["most"])
    if size <= header["inline"]:
        return [{"size": size, "file": False}], b"".join(pieces)
    if size > (free := _free()):
        raise Refused(
            f"it takes {size:,} bytes on the session's disk on its way, {free:,} are free: remove "
            "files, or raise the limit disk"
        )
    with _new_file(full), open(full, "xb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
    return [{"size": size, "file": True}], b""


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[None]:
    """Remove a file again unless it is complete, whatever comes in between."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise Refused(
            f"it has {size:,} bytes, {most:,} are allowed: get a part of it, or raise most"
        )


def _free() -> int:
    found = os.statvfs(layout.WORKSPACE)
    return found.f_bavail * found.f_frsize


def _missing(name: str, names: Names, own: Collection[str]) -> str:
    there = [each for each in list(names)[:MAX_NAMES] if type(each) is str]
    there = [each for each in there if each not in own and not each.startswith("_")]
    near = difflib.get_close_matches(name, there, n=3)
    if near:
        return f"there is no variable {name!r}; there is {', '.join(near)}"
    return f"there is no variable {name!r}: session.variables() lists those that there are"
