"""The way out of a connection: what is written in one go of the loop goes to the kernel together.

Each write is a call of the kernel that wakes the client, which then takes the processor for a part
of what it waits for.
"""

import asyncio
from typing import Any

MOST_GATHERED = 1 << 16
"""Bytes of messages that wait for one another. Behind them the transport itself says when a client
reads too slowly."""


class Outgoing(asyncio.Transport):
    """A transport, as uvicorn uses it for one answer after another.

    uvicorn writes the head of an answer, then its body, and each is a call of the kernel that
    wakes the client. Where nothing follows at once, as in a stream, the head goes alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._holds = False
        self._held = b""
        self._flushing: asyncio.Handle | None = None

    def begin(self) -> None:
        """Have what is written next wait for what comes after it, until the loop's next turn."""
        self._flush()  # the head of an answer to HEAD has nothing behind it
        self._holds = True

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._holds:
            self._holds = False
            self._held = bytes(data)
            self._flushing = self._loop.call_soon(self._flush)
            return
        held, self._held = self._held, b""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self._transport.write(held + data if held else data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        self._holds = False
        if self._held:
            self.write(b"")


class Gathered:
    """A transport for the messages of a WebSocket: those of one turn of the loop go together.

    All else about it is the transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()
        self._flushing: asyncio.Handle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > MOST_GATHERED:
            self._flush()
        elif self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._held:
            held, self._held = self._held, bytearray()
            self._transport.write(held)
