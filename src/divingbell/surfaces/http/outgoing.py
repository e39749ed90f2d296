"""The way out of a connection: the head of an answer goes together with what follows it."""

import asyncio


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
