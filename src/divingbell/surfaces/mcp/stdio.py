"""The MCP server over stdin and stdout, for one client: nothing but the protocol goes there."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from divingbell.app import Divingbell
from divingbell.surfaces.mcp.server import Surface

MAX_LINE = 32 << 20
"""Bytes of one message; what is longer is no message."""
CLOSE_TIMEOUT = 20.0


async def serve(bell: Divingbell) -> None:
    """Serve until the client closes its end. Cancelling this ends it as well."""
    surface = Surface(bell)
    try:
        await run(surface.server)
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await surface.close()


async def run(server: Server[Any]) -> None:
    """Have any server speak to the one client, until that closes its end."""
    lines: Any = _Lines(_taken_stdin())
    # The SDK moves stdout out of the way as we do with stdin: what prints by mistake, here or
    # in a process that is started from here, reaches stderr.
    async with stdio_server(stdin=lines) as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _taken_stdin() -> int:
    """Return stdin under another number; from now on stdin itself is empty."""
    taken = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return taken


class _Lines:
    """The lines that come in.

    Read by a thread of its own that nobody waits for: the SDK's own reader would keep a process
    that is told to end until its client speaks once more.
    """

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb")
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(16)

    async def __aiter__(self) -> AsyncIterator[str]:
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        while line := await self._queue.get():
            yield line.decode("utf-8", "replace")

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # the loop has ended
            while True:
                line = self._file.readline(MAX_LINE)
                asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
                if not line:
                    return
