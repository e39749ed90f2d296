"""The spool: output past its limit, written to a file in the workspace while the cell goes on."""

import asyncio
from collections.abc import Callable

from divingbell.errors import DivingbellError
from divingbell.session.files import Connection
from divingbell.session.source import PIECE

HIGH_WATER = 4 << 20
FINISH_TIMEOUT = 4.0


class Spool:
    """One such file: takes bytes at once, writes them as the file server can, and asks for pauses
    in between."""

    def __init__(
        self,
        open_line: Callable[[], int],
        path: str,
        pause: Callable[[], None],
        resume: Callable[[], None],
        full: Callable[[str], None],
    ) -> None:
        self.path = path
        self.failure: str | None = None
        self._open_line = open_line
        self._pause = pause
        self._resume = resume
        self._full = full
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._finished = False
        self._task = asyncio.create_task(self._write())

    def feed(self, data: bytes) -> None:
        if self.failure is not None:
            return
        self._buffer += data
        self._more.set()
        if len(self._buffer) > HIGH_WATER:
            self._pause()

    async def finish(self) -> None:
        """Wait until all is written, or can't be."""
        self._finished = True
        self._more.set()
        # Not awaited itself: once cancelled it would cancel us, and whoever called run().
        _, late = await asyncio.wait({self._task}, timeout=FINISH_TIMEOUT)
        if late:
            self.failure = "writing it took too long"
            self._task.cancel()
            self._resume()

    async def _write(self) -> None:
        try:
            line = Connection(self._open_line())
            try:
                await line.send({"op": "put", "path": self.path, "append": True})
                await line.receive("go")
                while self._buffer or not self._finished:
                    if not self._buffer:
                        self._more.clear()
                        await self._more.wait()
                        continue
                    piece = bytes(self._buffer[:PIECE])
                    del self._buffer[:PIECE]
                    await line.send({"op": "piece"}, piece)
                    if len(self._buffer) < HIGH_WATER // 2:
                        self._resume()
                await line.send({"op": "end"})
                await line.receive("stored")
            finally:
                line.close()
        except DivingbellError as error:
            self.failure = str(error)
            self._buffer.clear()
            self._full(self.failure)
            self._resume()
