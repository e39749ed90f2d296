"""The line to the command server of one command. Everything that arrives on it is hostile.

The server runs as the session's user, so whatever runs inside may have taken its place. Frames have
low caps, are taken in a few at a time, and what that costs is charged to the session.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable

from divingbell.shares.host_time import HostTime
from divingbell_inside import frames

READ_SIZE = 1 << 16
MAX_HEADER = 1 << 10
MAX_BODY = 1 << 16
"""Bytes of one piece of output: a pipe holds no more."""
MAX_STEPS = 256
"""Frames in a row, then others have their turn."""
REST = 0.003
"""Seconds between reads while little comes at a time. A reader that is always there is woken for
every line, which takes writer and reader longer than the line itself."""

Take = Callable[[frames.Header, bytes], None]


class CommandLine:
    """A socket to a command server, read as fast as the session's share of the host allows."""

    def __init__(self, descriptor: int, host_time: HostTime) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._host_time = host_time
        self._loop = asyncio.get_running_loop()
        self._decoder = frames.Decoder(max_header=MAX_HEADER, max_body=MAX_BODY)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._request_sent = False
        self.stopped = False
        """Whether no further frame is to be taken: whoever takes them may say so."""
        self.drawn = 0.0
        """Seconds of the host's time that it has taken since there was last enough of it."""

    async def ask(self, request: bytes, given: bytes) -> None:
        """Send the one request.

        Raises:
            OSError: the server has ended.
        """
        header = {"op": "run", "request": len(request)}
        await self._loop.sock_sendall(self._socket, frames.pack(header, request + given))
        self._request_sent = True

    def signal(self, number: int) -> bool:
        """Have the server send a signal to the command; return whether it was told."""
        frame = frames.pack({"op": "signal", "signal": number})
        try:
            return self._request_sent and self._socket.send(frame) == len(frame)
        except OSError:  # it is gone, or does not read
            return False

    def pause(self) -> None:
        """Stop reading: whoever writes must wait."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def break_off(self) -> None:
        """Have whoever reads or writes here find the line closed, also one that is paused."""
        self.stopped = True
        self.resume()
        with contextlib.suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    async def read(self, take: Take, taken: Callable[[], None]) -> None:
        """Pass frames to `take` until it stops us or the server has ended; call `taken` after a
        few.

        Raises:
            OSError: the line can't be read.
            FrameError: a frame breaks the rules.
        """
        last, more = 0.0, False
        while not self.stopped:
            await self._flowing.wait()
            data = b"" if more else await self._loop.sock_recv(self._socket, READ_SIZE)
            if not data and not more:
                return
            now = self._loop.time()
            is_crowded = now - last < REST and len(data) < READ_SIZE // 2
            last = now
            more, rest = self._take_some(data, take, taken)
            if not self.stopped:
                # Also for no time: what is ready is received without a pause for others.
                await asyncio.sleep(max(rest, REST if is_crowded and not more else 0.0))

    def _take_some(self, data: bytes, take: Take, taken: Callable[[], None]) -> tuple[bool, float]:
        """Take some frames in; return whether there may be more, and for how long to rest."""
        began, ends = time.thread_time(), time.perf_counter() + self._host_time.slice
        more = True
        try:
            self._decoder.feed(data)
            for _ in range(MAX_STEPS):
                frame = self._decoder.next_frame()
                more = frame is not None and not self.stopped
                if frame is None or self.stopped:
                    break
                take(*frame)
                if time.perf_counter() > ends:
                    break
            taken()
        finally:
            rest = self.charge(time.thread_time() - began)
        return more, rest

    def charge(self, seconds: float) -> float:
        """Take seconds of the host's time off the session's account; return how long to rest."""
        self.drawn += seconds
        rest = self._host_time.charge(seconds)
        if not rest:
            self.drawn = 0.0
        return rest
