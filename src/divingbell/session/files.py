"""Files of a session's workspace. The host never opens a path that the session controls:
a file server inside does, and its answers are checked like everything else from there.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Self, get_args

from divingbell import notebook
from divingbell.border.border import Reading
from divingbell.errors import DiskFull, FileMissing, FileRefused, FileTooLarge, InvalidInput
from divingbell.models import FileInfo, FileKind
from divingbell.session.base import FilesHandle, OpenFileHandle
from divingbell.session.intake import check_weight
from divingbell.session.source import Source, pieces_of
from divingbell_inside import frames, layout

ANSWER_TIMEOUT = 60.0
UNDO_TIMEOUT = 5.0
"""Seconds for the file server to remove what it has of a file whose source failed."""
NO_ANSWER = "the session's file server does not answer: try again, or open another session"
MAX_ENTRIES = 20_000
MAX_LISTED = 32 << 20
"""Bytes of a list as it comes. A true file server stops at four megabytes of paths, and JSON makes
up to six of one."""
MAX_LISTS = 2_000
"""Parts of a list: it has 200 files in each, and fewer where their paths are long."""
LEAST_PIECE, FEWEST_PIECES = 1 << 12, 1000
"""A file comes in pieces of 256 KB, and in smaller ones while code writes to it. Each costs the
host a little of its time, so that there may not be any number of them."""
MOST_SHOWN = 200
"""Files that a notebook shows of a list."""
MAX_PATH = 4096
MAX_NUMBER = 1 << 63
_KINDS: dict[object, type[FileRefused]] = {
    "missing": FileMissing,
    "too large": FileTooLarge,
    "disk full": DiskFull,
}


class Connection:
    """A line to a file server that serves one request."""

    def __init__(self, descriptor: int, path: str | None = None) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._decoder = frames.Decoder(check_weight)
        self._loop = asyncio.get_running_loop()
        self._path = path
        self.received = 0
        """Bytes of all headers that came."""

    async def send(self, header: frames.Header, body: bytes = b"") -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._loop.sock_sendall(self._socket, frames.pack(header, body))
        except (BrokenPipeError, ConnectionResetError):
            # The server has given up, and has said why.
            await self.receive()
        except TimeoutError:
            raise self.refused(NO_ANSWER) from None

    async def receive(self, *expected: str) -> tuple[frames.Header, bytes]:
        """Return the next frame.

        Raises:
            FileRefused: the server refuses, breaks off or breaks the rules.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await asyncio.sleep(0)  # what is there already is read without letting others run
                while (frame := self._decoder.next_frame()) is None:
                    data = await self._loop.sock_recv(self._socket, frames.RECEIVE_SIZE)
                    if not data:
                        raise self.refused("the session's file server has ended: try again")
                    self._decoder.feed(data)
        except TimeoutError:
            raise self.refused(NO_ANSWER) from None
        except (frames.FrameError, ConnectionResetError) as error:
            raise self.refused(f"the session's file server broke off: {error}") from None
        header, body = frame
        self.received += self._decoder.header_size
        event = header.get("event")
        if event == "refused":
            kind = header.get("kind")
            found = _KINDS.get(kind, FileRefused) if isinstance(kind, str) else FileRefused
            raise self.refused(str(header.get("reason"))[:500], found)
        if event not in expected:
            raise self.refused("the session's file server gave an answer that makes no sense")
        return header, body

    async def undo(self) -> None:
        """Say that no more will come, and wait until the server has cleared up."""
        with contextlib.suppress(OSError, FileRefused, TimeoutError):
            self._socket.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(UNDO_TIMEOUT):
                await self.receive()

    def refused(self, reason: str, kind: type[FileRefused] = FileRefused) -> FileRefused:
        """Return an error that names the path."""
        if self._path is None:
            return kind(reason)
        return kind(f"{(self._path or layout.WORKSPACE)[:200]!r}: {reason}")

    def close(self) -> None:
        self._socket.close()


class OpenFile(OpenFileHandle):
    """A file that is being read: iterate over it for its content, in pieces."""

    def __init__(self, line: Connection, info: FileInfo) -> None:
        self._line = line
        self._info = info
        self._left = info.size
        self._pieces_left = FEWEST_PIECES + info.size // LEAST_PIECE
        self._ended = False

    @property
    def info(self) -> FileInfo:
        return self._info

    def __repr__(self) -> str:
        read = self._info.size - self._left
        return f"<OpenFile {self._info.path!r}: {read:,} of {self._info.size:,} bytes read>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        try:
            header, body = await self._line.receive("piece", "end")
            self._left -= len(body)
            self._pieces_left -= 1
            if self._left < 0:
                raise self._line.refused("the session's file server sent more than it announced")
            if self._pieces_left < 0:
                raise self._line.refused("the session's file server sent it in crumbs")
            if body:
                return body
            if header["event"] == "piece":  # for ever, perhaps
                raise self._line.refused("the session's file server sent a piece of nothing")
            if self._left:
                raise self._line.refused("it was cut short while it was read: try again")
        except BaseException:
            await self.aclose()
            raise
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._ended = True
        self._line.close()

    def __del__(self) -> None:
        # Web frameworks drop what they stream when its reader has gone away.
        self._line.close()


class FileList(list[FileInfo]):
    """Files as they were listed; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = [(item.path, f"{item.size:,}", _moment(item.modified)) for item in self[:MOST_SHOWN]]
        left = len(self) - len(rows)
        more = notebook.small_text(f"and {left:,} more") if left else ""
        return notebook.table(("path", "bytes", "modified"), rows) + more


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "?"  # whoever is inside can set any time


class Files(FilesHandle):
    """The files below /workspace of a session, by the file server inside."""

    def __init__(
        self,
        session: str,
        open_line: Callable[[], int],
        most: Callable[[], int],
        on_put: Callable[[str], Reading],
    ) -> None:
        self._session = session
        self._open_line = open_line
        self._most = most
        self._on_put = on_put

    def __repr__(self) -> str:
        return f"<Files of the session {self._session!r}: `await files.list()` lists them>"

    def _repr_html_(self) -> str:
        return notebook.small_text(repr(self))  # to look at them takes an await

    async def put(self, path: str | PurePosixPath, data: Source) -> int:
        pieces = pieces_of(data)
        reading = self._on_put(checked_path(path))
        async with self._request("put", path) as (line, _):
            await line.receive("go")
            try:
                async with contextlib.aclosing(pieces):
                    async for piece in pieces:
                        reading.add(piece)
                        await line.send({"op": "piece"}, piece)
                await reading.end()
            except BaseException:
                await line.undo()
                raise
            await line.send({"op": "end"})
            header, _ = await line.receive("stored")
            return _size(header, line)

    async def get(self, path: str | PurePosixPath, *, most: int | None = None) -> bytes:
        found = bytearray()
        async with await self.open(path, most=most) as file:
            async for piece in file:
                found += piece
        return bytes(found)

    async def stream(
        self, path: str | PurePosixPath, *, most: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        async with await self.open(path, most=most) as file:
            async for piece in file:
                yield piece

    async def open(self, path: str | PurePosixPath, *, most: int | None = None) -> OpenFile:
        allowed = self._most() if most is None else _checked_most(most)
        line, name = await self._send("get", path, most=allowed)
        try:
            header, _ = await line.receive("file")
            info = _info(header, name, line)
            if info.size > allowed:
                words = f"it has {info.size:,} bytes, {allowed:,} are allowed"
                raise line.refused(words, FileTooLarge)
        except BaseException:
            line.close()
            raise
        return OpenFile(line, info)

    async def stat(self, path: str | PurePosixPath) -> FileInfo:
        async with self._request("stat", path) as (line, name):
            header, _ = await line.receive("status")
            return _info(header, name, line)

    async def list(self, path: str | PurePosixPath = "") -> list[FileInfo]:
        found: list[FileInfo] = []
        async with self._request("list", path) as (line, _):
            for _ in range(MAX_LISTS):
                header, _ = await line.receive("entries", "end")
                if header["event"] == "end":
                    return FileList(sorted(found, key=lambda item: item.path))
                found += _entries(header, line)
                if len(found) > MAX_ENTRIES or line.received > MAX_LISTED:
                    break
            raise line.refused("the session's file server lists without end")

    async def remove(self, path: str | PurePosixPath) -> None:
        async with self._request("remove", path) as (line, _):
            await line.receive("end")

    @contextlib.asynccontextmanager
    async def _request(
        self, operation: str, path: str | PurePosixPath
    ) -> AsyncIterator[tuple[Connection, str]]:
        """Send a request; give the line for its answer, and the path as it was sent."""
        line, name = await self._send(operation, path)
        try:
            yield line, name
        finally:
            line.close()

    async def _send(
        self, operation: str, path: str | PurePosixPath, **more: int
    ) -> tuple[Connection, str]:
        name = checked_path(path)
        line = Connection(self._open_line(), name)
        try:
            await line.send({"op": operation, "path": name, **more})
        except BaseException:
            line.close()
            raise
        return line, name


def checked_path(path: str | PurePosixPath) -> str:
    """Return a path relative to the workspace.

    Raises:
        FileRefused: it leads somewhere else.
        InvalidInput: it is neither a text nor a path.
    """
    if isinstance(path, PurePosixPath):
        path = str(path)
    if not isinstance(path, str):
        raise InvalidInput(
            f"the path is a {type(path).__name__}: pass a text or a pathlib.PurePosixPath"
        )
    if path == layout.WORKSPACE or path.startswith(layout.WORKSPACE + "/"):
        path = path[len(layout.WORKSPACE) :].lstrip("/")
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\0" in path or len(path) > MAX_PATH:
        raise FileRefused(f"{path[:200]!r} is not a path below {layout.WORKSPACE}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise FileRefused(f"{path[:200]!a} is not valid text") from None
    return "/".join(part for part in parts if part not in ("", "."))


def _checked_most(most: Any) -> int:
    if type(most) is not int or most < 0:
        raise InvalidInput(f"`most` is a number of bytes, not {str(most)[:50]!r}")
    return most


def _size(header: frames.Header, line: Connection) -> int:
    size = header.get("size")
    if type(size) is not int or not 0 <= size < MAX_NUMBER:
        raise line.refused("the session's file server gave a size that is none")
    return size


def _info(header: frames.Header, path: str, line: Connection) -> FileInfo:
    modified: Any = header.get("modified")
    kind = header.get("kind", "file")
    if type(modified) not in (int, float) or abs(modified) >= MAX_NUMBER:
        raise line.refused("the session's file server gave a time that is none")
    if kind not in get_args(FileKind):
        raise line.refused("the session's file server gave a kind that is none")
    return FileInfo(path, _size(header, line), float(modified), kind)


def _entries(header: frames.Header, line: Connection) -> list[FileInfo]:
    found = []
    entries = header.get("entries")
    for entry in entries if isinstance(entries, list) else []:
        match entry:
            case {"path": str(path)}:
                found.append(_info(entry, path, line))
            case _:
                raise line.refused("the session's file server gave an entry that makes no sense")
    return found
