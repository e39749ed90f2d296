"""The host's end of the line to one interpreter. Everything that arrives is hostile.

Text comes down a pipe, labelled events come as frames on a socket, and marks in the pipe say
where among the text an event belongs (see `divingbell_inside.output`). A frame that breaks the
rules closes the line; the session then starts a new interpreter.
"""

import asyncio
import codecs
import contextlib
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from divingbell_inside import frames

READ_SIZE = 1 << 18
MAX_READS = 64
"""Reads of the pipe in a row: a process that writes without end must not hold up the rest."""
MAX_PENDING = 10_000
MAX_PENDING_BYTES = 64 << 20
REST = 0.003
"""Seconds between reads while text pours in. A reader that is always there is woken for every
line, which takes writer and reader longer than the line itself."""
MAX_ANSWERS_BYTES = 20 << 20
"""Of answers that wait for text before them; a forged mark may not make us take in more."""
MAX_SEARCHES = 100
"""How often in a row a mark may send us looking for its frame: forged ones have none."""
MAX_EVENT_HEADER = 1 << 14
HEADER_WEIGHT = 20
"""A megabyte of JSON can be this many megabytes of objects."""
PENDING_COST = 1 << 10
MARK_SIZE = 16
MAX_BACKLOG = 64 << 20
"""Bytes that wait to be read by the other side; answers beyond that wait in turn."""

OnText = Callable[[bytes], None]
OnFrame = Callable[[frames.Header, bytes], None]


class Tether:
    """A socket and a pipe, read in order.

    `on_text` gets raw text, `on_frame` gets every frame in its place, `on_closed` gets the
    reason once the line is gone.
    """

    def __init__(
        self, on_text: OnText, on_frame: OnFrame, on_closed: Callable[[str], None]
    ) -> None:
        self._on_text = on_text
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._decoder = frames.Decoder()
        self._mark = secrets.token_bytes(MARK_SIZE)
        self._held = b""
        self._numbered: dict[int, tuple[frames.Header, bytes]] = {}
        self._numbered_bytes = 0
        self._answers_bytes = 0
        self._searches = 0
        self._answers: deque[tuple[frames.Header, bytes]] = deque()
        self._unsent = bytearray()
        self._relieved = asyncio.Event()
        self._paused = False
        self._resting: asyncio.TimerHandle | None = None
        self._last_text = 0.0
        self.closed = False
        self._socket, theirs = socket.socketpair()
        self._pipe, their_pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(their_pipe, True)
        self._socket.setblocking(False)
        self._ends: tuple[socket.socket, int] | None = (theirs, their_pipe)
        self._loop.add_reader(self._socket, self._pump)
        self._loop.add_reader(self._pipe, self._pump)

    def hand_over(self) -> list[int]:
        """The descriptors for the other side; call `handed_over` once they are sent."""
        assert self._ends is not None
        return [self._ends[0].fileno(), self._ends[1]]

    def handed_over(self, cell: int) -> None:
        """Close our copies of the other side's ends, and greet it."""
        self._close_ends()
        self.send({"op": "hello", "mark": self._mark.hex(), "cell": cell})

    def _close_ends(self) -> None:
        if self._ends is not None:
            (theirs, their_pipe), self._ends = self._ends, None
            theirs.close()
            os.close(their_pipe)

    def send(self, header: frames.Header, body: bytes = b"") -> None:
        data: bytes | memoryview = frames.pack(header, body)
        if self.closed:
            return
        if not self._unsent:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                self._fail(f"the interpreter has closed its line ({error.strerror})")
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
            self._loop.add_writer(self._socket, self._write)
        self._unsent += data
        if len(self._unsent) > 2 * MAX_BACKLOG:
            # Whoever sends waits in `drained`, unless it refuses something.
            self._fail("the interpreter does not read its answers")

    async def drained(self) -> None:
        """Return when the other side has read enough for more to be sent."""
        while len(self._unsent) > MAX_BACKLOG and not self.closed:
            self._relieved.clear()
            await self._relieved.wait()

    def _write(self) -> None:
        try:
            sent = self._socket.send(memoryview(self._unsent)[:READ_SIZE])
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(f"the interpreter has closed its line ({error.strerror})")
            return
        del self._unsent[:sent]
        self._relieved.set()
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def pause(self) -> None:
        """Stop reading: whoever writes must wait."""
        if not self._paused and not self.closed:
            self._paused = True
            self._wake()
            self._loop.remove_reader(self._pipe)
            self._loop.remove_reader(self._socket)

    def resume(self) -> None:
        if self._paused and not self.closed:
            self._paused = False
            self._loop.add_reader(self._pipe, self._pump)
            self._loop.add_reader(self._socket, self._pump)
            self._loop.call_soon(self._pump_if_open)

    def _rest(self) -> None:
        """Leave the pipe alone for a moment, so that text gathers there."""
        self._loop.remove_reader(self._pipe)
        self._resting = self._loop.call_later(REST, self._end_rest)

    def _end_rest(self) -> None:
        self._resting = None
        if not self.closed and not self._paused:
            self._loop.add_reader(self._pipe, self._pump)
            self._pump()

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def close(self) -> None:
        """Let go of both ends. What is still in the pipe is read first."""
        if self.closed:
            return
        try:
            with contextlib.suppress(OSError, frames.FrameError):
                self._read_pipe()
            self._release()
        finally:
            self.closed = True
            self._relieved.set()
            self._wake()
            for descriptor in (self._socket, self._pipe):
                self._loop.remove_reader(descriptor)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            os.close(self._pipe)
            self._close_ends()

    def _fail(self, reason: str) -> None:
        if not self.closed:
            self.close()
            self._on_closed(reason)

    def _pump_if_open(self) -> None:
        if not self.closed:
            self._pump()

    def _pump(self) -> None:
        """Take in what has arrived and pass it on in order."""
        self._searches = 0
        try:
            self._read_socket()
            self._read_pipe()
        except (OSError, frames.FrameError) as error:
            self._fail(str(error))
            return
        while self._answers and not self.closed and not self._paused:
            # All text before an answer was in the pipe before it was sent, so it is out by now.
            self._release()
            self._on_frame(*self._answers.popleft())
        if not self._answers:
            self._answers_bytes = 0

    def _read_socket(self) -> None:
        try:
            data = self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            raise OSError("the interpreter has closed its line")
        answers_bytes = 0
        for header, body in self._decoder.feed(data):
            number = header.get("n")
            if number is None:
                self._answers.append((header, body))
                answers_bytes += len(body) + HEADER_WEIGHT * self._decoder.header_size
            elif type(number) is int:
                if self._decoder.header_size > MAX_EVENT_HEADER:
                    raise frames.FrameError("an event has a header that is too long")
                self._numbered[number] = header, body
                self._numbered_bytes += len(body) + PENDING_COST
            else:
                raise frames.FrameError("a frame has a number that is none")
        if len(self._numbered) > MAX_PENDING or self._numbered_bytes > MAX_PENDING_BYTES:
            raise frames.FrameError("too many events without their marks")
        self._answers_bytes += answers_bytes

    def _read_pipe(self) -> None:
        for turn in range(MAX_READS):
            try:
                data = os.read(self._pipe, READ_SIZE)
            except BlockingIOError:
                break
            if not data:  # every writer is gone; the socket will say so too
                self._loop.remove_reader(self._pipe)
                break
            self._take_text(data)
            if self._paused or self.closed:
                return
            if turn == 0:
                now = self._loop.time()
                if now - self._last_text < REST and self._resting is None:
                    self._rest()
                self._last_text = now
        if self._held:
            text, self._held = self._held, b""
            self._on_text(text)

    def _take_text(self, data: bytes) -> None:
        data = self._held + data
        self._held = b""
        start = 0
        size = MARK_SIZE + frames.MARK_NUMBER_SIZE
        while (at := data.find(self._mark, start)) >= 0:
            if at + size > len(data):
                break
            if at > start:
                self._on_text(data[start:at])
            self._meet_mark(int.from_bytes(data[at + MARK_SIZE : at + size], "big"))
            start = at + size
        rest = data[start:]
        held = _possible_mark(rest, self._mark, size)
        self._held = rest[len(rest) - held :]
        if len(rest) > held:
            self._on_text(rest[: len(rest) - held])

    def _meet_mark(self, number: int) -> None:
        if (
            number not in self._numbered
            and self._searches < MAX_SEARCHES
            and self._answers_bytes < MAX_ANSWERS_BYTES
        ):
            self._searches += 1
            self._read_socket()  # the frame was sent before its mark, so it is there
        found = self._numbered.pop(number, None)
        if found is not None:
            self._numbered_bytes -= len(found[1]) + PENDING_COST
            self._on_frame(*found)

    def _release(self) -> None:
        """Pass on events whose mark never came (user code had closed the pipe)."""
        for number in sorted(self._numbered):
            self._on_frame(*self._numbered.pop(number))
        self._numbered_bytes = 0


def _possible_mark(text: bytes, mark: bytes, size: int) -> int:
    """How many bytes at the end may be the start of a mark that has not all arrived."""
    at = text.rfind(mark)
    if at >= 0 and len(text) - at < size:
        return len(text) - at
    tail = text[-len(mark) + 1 :]
    at = tail.find(mark[:1])
    while at >= 0:
        if mark.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(mark[:1], at + 1)
    return 0


class TextDecoder:
    """UTF-8 in pieces; what is no UTF-8 becomes replacement characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, *, last: bool = False) -> str:
        return self._decoder.decode(data, last)


def field_of(header: frames.Header, name: str, kind: type, default: Any = None) -> Any:
    """Return a field of a hostile header if it has the right type, else the default."""
    value = header.get(name, default)
    return value if type(value) is kind else default
