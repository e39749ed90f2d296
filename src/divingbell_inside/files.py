"""The file server of a session: a short-lived child of pid 1 that serves one request.

It runs inside, with the session's own view and rights. Paths are walked one component at a
time without following links, so that a link in the workspace leads nowhere, and only regular
files are opened (a pipe or a device would block).
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from typing import Any

from divingbell_inside import frames, layout

PIECE = 1 << 18
MAX_ENTRIES = 10_000
MAX_NAMES = 4 << 20
"""Bytes of all paths of a list: ten thousand deep ones would be a hundred megabytes."""
ENTRIES_PER_FRAME = 200
NAMES_PER_FRAME = 1 << 16
"""Bytes of paths; JSON makes up to six of one, and a header may have a megabyte."""
MAX_DEPTH = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """Raised for a request that can't be granted; the message says why."""

    kind = "refused"


class Missing(Refused):
    """Raised where there is nothing of that name."""

    kind = "missing"


class TooLarge(Refused):
    """Raised for a file that has more bytes than were asked for."""

    kind = "too large"


class DiskFull(Refused):
    """Raised where the session's disk has no room left, or no room for one more file."""

    kind = "disk full"


_NO_FILE = "it is a pipe, a socket or a device, and not a file"
_LINK_IN_THE_WAY = "a link is in the way, and links are never followed"
_FILE_IN_THE_WAY = "a part of the path is a file, and not a folder"
_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder, and not a file",
    errno.ELOOP: "it is a link, and links are never followed",
    errno.ENOSPC: (
        "the session's disk is full: remove files, or open the session with a higher limit disk"
    ),
}
_KINDS_OF_ERRORS: dict[int, type[Refused]] = {errno.ENOENT: Missing, errno.ENOSPC: DiskFull}


def serve(line: socket.socket) -> None:
    """Answer the one request on the line."""
    request = frames.receive(line)
    if request is None:
        return
    header, _ = request
    try:
        _OPERATIONS[header["op"]](line, header)
    except (Refused, OSError) as error:
        refused = error if isinstance(error, Refused) else _translated(error)
        reason = {"event": "refused", "reason": str(refused), "kind": refused.kind}
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody waits for it
            line.sendall(frames.pack(reason))


def _translated(error: OSError) -> Refused:
    number = error.errno or 0
    words = os.strerror(number) if number else str(error)
    return _KINDS_OF_ERRORS.get(number, Refused)(_WORDS.get(number, words))


def _components(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("a path may not contain '..'")
    return parts


def _named(path: str) -> tuple[list[str], str]:
    """Return the folders on the way to a file, and its name."""
    parts = _components(path)
    if not parts:
        raise Refused("the path names no file")
    return parts[:-1], parts[-1]


def _folder(parts: list[str], *, make: bool = False) -> int:
    """Open the folder below the workspace that `parts` lead to."""
    at = os.open(layout.WORKSPACE, _FOLDER)
    for part in parts:
        if make:
            with contextlib.suppress(FileExistsError):  # another put may make it, too
                os.mkdir(part, 0o755, dir_fd=at)
        try:
            below = os.open(part, _FOLDER, dir_fd=at)
        except NotADirectoryError:
            found = _status(at, part)
            if found is not None and stat.S_ISLNK(found.st_mode):
                raise Refused(_LINK_IN_THE_WAY) from None
            raise (Refused if make else Missing)(_FILE_IN_THE_WAY) from None
        _check_no_link(below, part, at)
        os.close(at)
        at = below
    return at


def _check_no_link(opened: int, name: str, folder: int) -> None:
    """Refuse a link to a folder: gVisor's kernel of 2022 follows it although told not to."""
    found, named = os.fstat(opened), os.stat(name, dir_fd=folder, follow_symlinks=False)
    if (found.st_dev, found.st_ino) != (named.st_dev, named.st_ino):
        raise Refused(_LINK_IN_THE_WAY)


def _put(line: socket.socket, header: dict[str, Any]) -> None:
    above, name = _named(header["path"])
    folder = _folder(above, make=True)
    _check_no_folder(folder, name)
    if header.get("append"):
        with _opened(name, os.O_APPEND, folder) as file:
            size = _written(file, line)
    else:
        size = _replaced(name, folder, line)
    line.sendall(frames.pack({"event": "stored", "size": size}))


def _check_no_folder(folder: int, name: str) -> None:
    """Refuse a folder before anything is sent: the rename would, but only after all of it."""
    found = _status(folder, name)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise Refused("it is a folder: put the file under a name in it, or remove the folder first")


def _replaced(name: str, folder: int, line: socket.socket) -> int:
    """Write a file that takes its name when it is complete, and is gone if it never is."""
    temporary = f".{os.getpid()}.part"
    with _opened(temporary, os.O_TRUNC, folder) as file:
        try:
            size = _written(file, line)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
    return size


@contextlib.contextmanager
def _opened(name: str, flag: int, folder: int) -> Iterator[int]:
    """Open a file to write to. It is closed before anything is said about it: what is removed
    takes its space until then."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(name, flags | flag, 0o644, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _written(file: int, line: socket.socket) -> int:
    """Write what comes to a file, and return its size then."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise Refused(_NO_FILE)
    line.sendall(frames.pack({"event": "go"}))
    while True:
        frame = frames.receive(line)
        if frame is None:
            raise Refused("the transfer broke off")
        view = memoryview(frame[1])
        while view:
            view = view[os.write(file, view) :]
        if frame[0]["op"] == "end":
            return os.fstat(file).st_size


def _get(line: socket.socket, header: dict[str, Any]) -> None:
    above, name = _named(header["path"])
    folder = _folder(above)
    # Not blocking, because opening a pipe would wait for its other end.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=folder)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise Refused(_WORDS[errno.EISDIR] if stat.S_ISDIR(found.st_mode) else _NO_FILE)
    if found.st_size > header["most"]:
        raise TooLarge(f"it has {found.st_size:,} bytes, {header['most']:,} are allowed")
    opened = {"event": "file", "size": found.st_size, "modified": found.st_mtime}
    line.sendall(frames.pack(opened))
    left = found.st_size
    while left:
        piece = os.read(file, min(PIECE, left))
        if not piece:
            break
        left -= len(piece)
        line.sendall(frames.pack({"event": "piece"}, piece))
    line.sendall(frames.pack({"event": "end"}))


def _walk(top: int, parts: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the regular files below; folders deeper than MAX_DEPTH are left out.

    Depth first, with a list in the place of recursion: one descriptor is open for each level.
    """
    levels = [(top, sorted(_names(top), reverse=True), "".join(f"{part}/" for part in parts))]
    while levels:
        folder, names, prefix = levels[-1]
        if not names:
            os.close(folder)
            levels.pop()
            continue
        name = names.pop()
        found = _status(folder, name)
        if found is not None and stat.S_ISREG(found.st_mode):
            path = _text(prefix + name)
            yield {"path": path, "size": found.st_size, "modified": found.st_mtime}
        elif found is not None and stat.S_ISDIR(found.st_mode) and len(levels) < MAX_DEPTH:
            with contextlib.suppress(OSError, Refused):  # gone, locked, or a link by now
                below = os.open(name, _FOLDER, dir_fd=folder)
                _check_no_link(below, name, folder)
                levels.append((below, sorted(_names(below), reverse=True), f"{prefix}{name}/"))


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # user code has locked itself out of it


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # it went away


def _text(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _list(line: socket.socket, header: dict[str, Any]) -> None:
    parts = _components(header["path"])
    batch: list[dict[str, Any]] = []
    names = names_before = 0
    for count, entry in enumerate(_walk(_folder(parts), parts), 1):
        names += len(entry["path"].encode())
        if count > MAX_ENTRIES:
            raise Refused(f"there are more than {MAX_ENTRIES:,} files: list a folder of them")
        if names > MAX_NAMES:
            raise Refused(
                f"the paths of its files have more than {MAX_NAMES:,} bytes: list a folder of them"
            )
        batch.append(entry)
        if len(batch) == ENTRIES_PER_FRAME or names - names_before > NAMES_PER_FRAME:
            line.sendall(frames.pack({"event": "entries", "entries": batch}))
            batch, names_before = [], names
    line.sendall(frames.pack({"event": "entries", "entries": batch}))
    line.sendall(frames.pack({"event": "end"}))


def _stat(line: socket.socket, header: dict[str, Any]) -> None:
    parts = _components(header["path"])
    if parts:
        found = os.stat(parts[-1], dir_fd=_folder(parts[:-1]), follow_symlinks=False)
    else:
        found = os.stat(layout.WORKSPACE, follow_symlinks=False)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    size = found.st_size if kind == "file" else 0
    told = {"event": "status", "kind": kind, "size": size, "modified": found.st_mtime}
    line.sendall(frames.pack(told))


def _remove(line: socket.socket, header: dict[str, Any]) -> None:
    above, name = _named(header["path"])
    try:
        os.unlink(name, dir_fd=_folder(above))
    except IsADirectoryError:
        raise Refused(
            "it is a folder: remove its files one by one, or have code run shutil.rmtree"
        ) from None
    line.sendall(frames.pack({"event": "end"}))


_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_OPERATIONS = {"put": _put, "get": _get, "list": _list, "stat": _stat, "remove": _remove}
