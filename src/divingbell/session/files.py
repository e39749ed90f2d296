"""Files of a session's workspace. The host never opens a path that the session controls:
a file server inside does, and its answers are checked like everything else from there.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

from divingbell.errors import FileRefused
from divingbell.models import FileInfo
from divingbell.session.base import FilesHandle, Source
from divingbell_inside import frames, layout

PIECE = 1 << 18
ANSWER_TIMEOUT = 60.0
NO_ANSWER = "the session's file server does not answer: try again, or open another session"
MAX_ENTRIES = 20_000
MAX_PATH = 4096


class Connection:
    """A line to a file server that serves one request."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._decoder = frames.Decoder()
        self._loop = asyncio.get_running_loop()

    async def send(self, header: frames.Header, body: bytes = b"") -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._loop.sock_sendall(self._socket, frames.pack(header, body))
        except (BrokenPipeError, ConnectionResetError):
            # The server has given up, and has said why.
            await self.receive()
        except TimeoutError:
            raise FileRefused(NO_ANSWER) from None

    async def receive(self, *expected: str) -> tuple[frames.Header, bytes]:
        """Return the next frame.

        Raises:
            FileRefused: the server refuses, breaks off or breaks the rules.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                while (frame := self._decoder.next_frame()) is None:
                    data = await self._loop.sock_recv(self._socket, frames.RECEIVE_SIZE)
                    if not data:
                        raise FileRefused("the session's file server has ended: try again")
                    self._decoder.feed(data)
        except TimeoutError:
            raise FileRefused(NO_ANSWER) from None
        except (frames.FrameError, ConnectionResetError) as error:
            raise FileRefused(f"the session's file server broke off: {error}") from None
        header, body = frame
        event = header.get("event")
        if event == "refused":
            raise FileRefused(str(header.get("reason"))[:500])
        if event not in expected:
            raise FileRefused("the session's file server gave an answer that makes no sense")
        return header, body

    def close(self) -> None:
        self._socket.close()


class Files(FilesHandle):
    """Files of a session of this process, by the file server inside."""

    def __init__(self, open_line: Callable[[], int], most: Callable[[], int]) -> None:
        self._open_line = open_line
        self._most = most

    async def put(self, path: str, data: Source) -> int:
        async with self._request({"op": "put", "path": checked_path(path)}) as line:
            await line.receive("go")
            async with contextlib.aclosing(pieces_of(data)) as pieces:
                async for piece in pieces:
                    await line.send({"op": "piece"}, piece)
            await line.send({"op": "end"})
            header, _ = await line.receive("stored")
            return _size(header)

    async def get(self, path: str, *, most: int | None = None) -> bytes:
        found = bytearray()
        async with contextlib.aclosing(self.stream(path, most=most)) as pieces:
            async for piece in pieces:
                found += piece
        return bytes(found)

    async def stream(self, path: str, *, most: int | None = None) -> AsyncGenerator[bytes, None]:
        allowed = self._most() if most is None else most
        request = {"op": "get", "path": checked_path(path), "most": allowed}
        async with self._request(request) as line:
            header, _ = await line.receive("file")
            left = _size(header)
            if left > allowed:
                raise FileRefused(f"it has {left:,} bytes, {allowed:,} are allowed")
            while True:
                header, body = await line.receive("piece", "end")
                if header["event"] == "end":
                    return
                left -= len(body)
                if left < 0:
                    raise FileRefused("the session's file server sent more than it announced")
                yield body

    async def list(self, path: str = "") -> list[FileInfo]:
        found: list[FileInfo] = []
        async with self._request({"op": "list", "path": checked_path(path)}) as line:
            while True:
                header, _ = await line.receive("entries", "end")
                if header["event"] == "end":
                    return sorted(found, key=lambda item: item.path)
                found += _entries(header)
                if len(found) > MAX_ENTRIES:
                    raise FileRefused("the session's file server lists without end")

    async def remove(self, path: str) -> None:
        async with self._request({"op": "remove", "path": checked_path(path)}) as line:
            await line.receive("end")

    @contextlib.asynccontextmanager
    async def _request(self, request: frames.Header) -> AsyncIterator[Connection]:
        line = Connection(self._open_line())
        try:
            await line.send(request)
            yield line
        finally:
            line.close()


def checked_path(path: str) -> str:
    """Return a path relative to the workspace.

    Raises:
        FileRefused: it leads somewhere else.
    """
    if path == layout.WORKSPACE or path.startswith(layout.WORKSPACE + "/"):
        path = path[len(layout.WORKSPACE) :].lstrip("/")
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\0" in path or len(path) > MAX_PATH:
        raise FileRefused(f"{path[:200]!r} is not a path below {layout.WORKSPACE}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise FileRefused("the path is not valid text") from None
    return path


async def pieces_of(data: Source) -> AsyncGenerator[bytes, None]:
    """Cut any source into pieces that fit a frame."""
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, bytes | bytearray):
        for start in range(0, len(data), PIECE):
            yield bytes(data[start : start + PIECE])
    elif isinstance(data, Path):
        with await asyncio.to_thread(data.open, "rb") as file:
            async for piece in pieces_of(file):
                yield piece
    elif isinstance(data, AsyncIterator):
        async for chunk in data:
            for start in range(0, len(chunk), PIECE):
                yield bytes(chunk[start : start + PIECE])
    else:
        while piece := await asyncio.to_thread(data.read, PIECE):
            yield piece


def _size(header: frames.Header) -> int:
    size = header.get("size")
    if type(size) is not int or size < 0:
        raise FileRefused("the session's file server gave a size that is none")
    return size


def _entries(header: frames.Header) -> list[FileInfo]:
    found = []
    entries = header.get("entries")
    for entry in entries if isinstance(entries, list) else []:
        match entry:
            case {"path": str(path), "size": int(size), "modified": int() | float() as modified}:
                found.append(FileInfo(path, size, float(modified)))
            case _:
                raise FileRefused("the session's file server gave an entry that makes no sense")
    return found
