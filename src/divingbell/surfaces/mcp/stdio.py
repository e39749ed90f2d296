"""The MCP server over stdin and stdout, for one client: nothing but the protocol goes there."""

import asyncio
import contextlib
import os
import select
import socket
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from divingbell.app import Divingbell
from divingbell.surfaces.mcp.callers import OVER_STDIO
from divingbell.surfaces.mcp.server import Surface

MAX_LINE = 32 << 20
"""Bytes of one message; what is longer is no message."""
MOST_WAITING = 16
"""Messages that were read and wait to be taken."""
CLOSE_TIMEOUT = 20.0


async def serve(bell: Divingbell) -> None:
    """Serve until the client closes its end. Cancelling this ends it as well."""
    surface = Surface(bell)
    release = bell.border.hold(OVER_STDIO)
    try:
        await run(surface.server)
    finally:
        release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await surface.close()


async def run(server: Server[Any]) -> None:
    """Have any server speak to the one client, until that closes its end."""
    lines: Any = _Lines(_taken_stdin())
    with _taken_stdout() as descriptor, contextlib.closing(_Messages(descriptor)) as messages:
        out: Any = messages
        async with stdio_server(stdin=lines, stdout=out) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


def _taken_stdin() -> int:
    """Return stdin under another number; from now on stdin itself is empty."""
    taken = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return taken


@contextlib.contextmanager
def _taken_stdout() -> Iterator[int]:
    """Have stdout under another number: what prints by mistake, here or in a process that is
    started from here, reaches stderr."""
    sys.stdout.flush()
    taken = os.dup(1)
    os.dup2(2, 1)
    try:
        yield taken
    finally:
        os.dup2(taken, 1)


class _Lines:
    """The lines that come in.

    Read by a thread of its own that nobody waits for: the SDK's own reader would keep a process
    that is told to end until its client speaks once more.
    """

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb")
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(MOST_WAITING)

    async def __aiter__(self) -> AsyncIterator[str]:
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        while line := await self._queue.get():
            self._room.release()
            yield line.decode("utf-8", "replace")

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # the loop has ended
            while True:
                line = self._file.readline(MAX_LINE)
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
                if not line:
                    return


class _Messages:
    """The messages that go out: at once where the client has room for them, else by a thread.

    The SDK's own way has a thread write and another flush, whatever there is: measured, a fifth of
    what a small call takes.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self._has_room = select.poll() if stat.S_ISFIFO(mode) else None
        if self._has_room is not None:
            self._has_room.register(descriptor, select.POLLOUT)
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(mode) else None

    def close(self) -> None:
        """Let go of it; it stays open."""
        if self._socket is not None:
            self._socket.close()

    async def write(self, text: str) -> None:
        """Write a message; it is whole when this returns."""
        data = text.encode()
        left = data[self._write_at_once(data) :]
        if left:
            await anyio.to_thread.run_sync(_write_all, self._descriptor, left)

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write_at_once(self, data: bytes) -> int:
        """Write what can be written without waiting; return how many bytes that were."""
        if self._socket is not None:
            with contextlib.suppress(BlockingIOError):
                return self._socket.send(data, socket.MSG_DONTWAIT)
            return 0
        # A pipe that is not full takes so much in one go.
        if self._has_room is None or len(data) > select.PIPE_BUF:
            return 0
        if any(event & select.POLLOUT for _, event in self._has_room.poll(0)):
            return os.write(self._descriptor, data)
        return 0


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
