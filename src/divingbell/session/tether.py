"""The host's end of the line to one interpreter. Everything that arrives is hostile.

Text comes down a pipe, labelled events come as frames on a socket, and marks in the pipe say
where among the text an event belongs (see `divingbell_inside.output`). A frame that breaks the
rules closes the line; the session then starts a new interpreter.

All of it is taken in by small steps, a few at a time: one event loop serves many sessions, and
what one of them sends must not hold up the others.
"""

import asyncio
import codecs
import contextlib
import fcntl
import os
import secrets
import socket
import sys
import termios
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from divingbell.shares import weight
from divingbell.shares.host_time import SLICE, HostTime
from divingbell_inside import frames

READ_SIZE = 1 << 16
"""What a pipe holds. A larger buffer, made for each read, costs ten times as much as the read."""
MAX_STEPS = 256
"""Steps in a row: a step takes in one frame, one mark or one read. Then others have their turn."""
CLOSING = 0.003
"""Seconds for what is still in the pipe when the line is closed: last words, or a flood."""
MAX_PENDING = 10_000
MAX_PENDING_BYTES = 64 << 20
REST = 0.003
"""Seconds between reads while text pours in. A reader that is always there is woken for every
line, which takes writer and reader longer than the line itself."""
MAX_ANSWERS = 1000
MAX_ANSWERS_BYTES = 20 << 20
"""Answers that wait for text before them; a forged mark may not make us take in more."""
MAX_EVENT_HEADER = 1 << 14
MAX_WEIGHT = 200_000
"""Of a header (see `scale`), which is parsed within 20 ms: a value of 20,000 lists weighs this."""
HEADER_WEIGHT = 25
"""A megabyte of JSON can be this many megabytes of objects."""
PENDING_COST = 1 << 10
MARK_SIZE = 16
MAX_BACKLOG = 64 << 20
"""Bytes that wait to be read by the other side; answers beyond that wait in turn."""

OnText = Callable[[bytes], None]
OnFrame = Callable[[frames.Header, bytes], None]
Frame = tuple[frames.Header, bytes]


class Tether:
    """A socket and a pipe, read in order.

    `on_text` gets raw text, `on_frame` gets every frame in its place, `on_closed` gets the
    reason once the line is gone. What reading costs is charged to `host_time`.
    """

    def __init__(
        self,
        on_text: OnText,
        on_frame: OnFrame,
        on_closed: Callable[[str], None],
        host_time: HostTime,
    ) -> None:
        self._on_text = on_text
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._host_time = host_time
        self._loop = asyncio.get_running_loop()
        self._decoder = frames.Decoder(_check_weight)
        self._mark = secrets.token_bytes(MARK_SIZE)
        self._text = bytearray()
        """Out of the pipe, not looked at yet."""
        self._plain = bytearray()
        """Text without marks, to be passed on in one piece."""
        self._read = 0
        self._looked_at = 0
        """Bytes of the pipe that were read, and those of them that are no longer in `_text`."""
        self._numbered: OrderedDict[int, tuple[int, Frame]] = OrderedDict()
        """Each with its weight."""
        self._numbered_bytes = 0
        self._answers: deque[tuple[int, Frame]] = deque()
        """Each with the bytes of the pipe that come before it."""
        self._answers_bytes = 0
        self._unsent = bytearray()
        self._relieved = asyncio.Event()
        self._paused = False
        self._resting: asyncio.TimerHandle | None = None
        self._pipe_resting: asyncio.TimerHandle | None = None
        self._going_on: asyncio.Handle | None = None
        self._last_text = 0.0
        self._was_full = False
        self._socket_ready = self._pipe_ready = False
        self._socket_ended = self._pipe_ended = False
        self._broken = False
        self._watched: set[int] = set()
        self.closed = False
        self._socket, theirs = socket.socketpair()
        self._pipe, their_pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(their_pipe, True)
        self._socket.setblocking(False)
        self._ends: tuple[socket.socket, int] | None = (theirs, their_pipe)
        self._watch()

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

    # When there is reading

    def pause(self) -> None:
        """Stop reading: whoever writes must wait."""
        self._paused = True
        self._watch()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._watch()
            self._loop.call_soon(self._pump)  # for what has been read and not passed on

    def _watch(self) -> None:
        """Have the loop tell us of what we are ready to read, and of nothing else."""
        awake = not (self.closed or self._paused or self._resting)
        self._watch_one(self._socket.fileno(), awake and not self._socket_ended, self._see_socket)
        wanted = awake and not (self._pipe_ended or self._pipe_resting)
        self._watch_one(self._pipe, wanted, self._see_pipe)

    def _watch_one(self, descriptor: int, wanted: bool, seen: Callable[[], None]) -> None:
        if wanted and descriptor not in self._watched:
            self._watched.add(descriptor)
            self._loop.add_reader(descriptor, seen)
        elif not wanted and descriptor in self._watched:
            self._watched.discard(descriptor)
            self._loop.remove_reader(descriptor)

    def _go_on(self) -> None:
        self._going_on = None
        self._pump()

    def _see_socket(self) -> None:
        self._socket_ready = True
        self._pump()

    def _see_pipe(self) -> None:
        self._pipe_ready = True
        now = self._loop.time()
        if now - self._last_text < REST and not self._was_full:
            self._pipe_resting = self._loop.call_later(REST, self._end_pipe_rest)
            self._watch()
        self._last_text = now
        self._pump()

    def _end_pipe_rest(self) -> None:
        self._pipe_resting = None
        self._watch()

    def _rest(self, seconds: float, more: bool) -> None:
        self._resting = self._loop.call_later(seconds, self._end_rest, more)
        self._watch()

    def _end_rest(self, more: bool) -> None:
        self._resting = None
        self._watch()
        if more or self._socket_ended:
            self._pump()

    def close(self) -> None:
        """Let go of both ends. What is still in the pipe is read first, within reason."""
        if self.closed:
            return
        try:
            self._paused = False
            with contextlib.suppress(OSError, frames.FrameError):
                self._take_last_words()
        finally:
            self.closed = True
            self._watch()
            self._relieved.set()
            for timer in (self._resting, self._pipe_resting):
                if timer is not None:
                    timer.cancel()
            self._loop.remove_writer(self._socket)
            self._socket.close()
            os.close(self._pipe)
            self._close_ends()

    def _fail(self, reason: str) -> None:
        if not self.closed:
            self.close()
            self._on_closed(reason)

    # Reading

    def _pump(self) -> None:
        """Take in some of what has arrived and pass it on in order."""
        if self.closed or self._paused or self._resting or self._going_on:
            return
        began = time.thread_time()
        try:
            more = self._take_steps(MAX_STEPS, self._host_time.slice)
        except (OSError, frames.FrameError) as error:
            self._broken = True
            self._fail(str(error))
            more = False
        rest = self._host_time.charge(time.thread_time() - began)
        if self.closed:
            return
        if rest > SLICE or (more and rest):
            self._rest(max(rest, SLICE), more)
        elif more:
            self._going_on = self._loop.call_soon(self._go_on)
        elif self._socket_ended:
            self._fail("the interpreter has closed its line")

    def _take_steps(self, most: int, seconds: float) -> bool:
        """Take in what has arrived; return whether something is left for the next time."""
        ends = time.perf_counter() + seconds
        try:
            for _ in range(most):
                if self.closed or self._paused or not self._step():
                    return False
                if time.perf_counter() > ends:
                    break
            return True
        finally:
            self._pass_on_text()

    def _take_last_words(self) -> None:
        self._pipe_ready = True
        ends = time.perf_counter() + CLOSING
        self._take_steps(sys.maxsize, CLOSING)
        while self._numbered and time.perf_counter() < ends:
            self._release()

    def _step(self) -> bool:
        """Do one small piece of work; return False where there was none."""
        if self._answers and self._looked_at >= self._answers[0][0]:
            self._answer()
        elif self._text:
            self._take_text()
        elif self._answers or self._pipe_ready:
            self._read_pipe()
        elif (frame := self._next_frame()) is not None:
            self._sort_in(frame)
        elif self._socket_ready:
            self._read_socket()
        else:
            return False
        return True

    def _next_frame(self) -> Frame | None:
        # After one that breaks the rules none is believed.
        return None if self._broken else self._decoder.next_frame()

    def _read_socket(self) -> bool:
        """Read once; return whether there was anything."""
        self._socket_ready = False
        if self._broken:
            return False
        try:
            data = self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return False
        self._decoder.feed(data)
        self._socket_ended = not data
        return bool(data)

    def _read_pipe(self) -> bool:
        """Read once; return whether there was anything."""
        self._pipe_ready = False
        try:
            data = os.read(self._pipe, READ_SIZE)
        except BlockingIOError:
            data = b""
        else:
            self._pipe_ended = not data  # every writer is gone; the socket will say so too
            # Of one that was full there is more to come at once: its writer waits for us. It may
            # hold less than its size then, as it is filled by pages.
            self._was_full = self._pipe_ready = len(data) > READ_SIZE // 2
        if not data and self._answers:
            # Code may read its own pipe: what was to come before the answer does not come.
            self._looked_at = max(self._looked_at, self._answers[0][0])
        self._text += data
        self._read += len(data)
        return bool(data)

    def _sort_in(self, frame: Frame) -> None:
        header, body = frame
        weight = len(body) + PENDING_COST + HEADER_WEIGHT * self._decoder.header_size
        number = header.get("n")
        if number is None:
            # All text before an answer was in the pipe before it was sent.
            self._answers.append((self._read + _waiting_in(self._pipe), frame))
            self._answers_bytes += weight
        elif type(number) is int:
            if self._decoder.header_size > MAX_EVENT_HEADER:
                raise frames.FrameError("an event has a header that is too long")
            self._numbered[number] = weight, frame
            self._numbered_bytes += weight
            if len(self._numbered) > MAX_PENDING or self._numbered_bytes > MAX_PENDING_BYTES:
                raise frames.FrameError("too many events without their marks")
        else:
            raise frames.FrameError("a frame has a number that is none")

    def _take_text(self) -> None:
        """Take text up to a mark, or the mark that it begins with."""
        size = MARK_SIZE + frames.MARK_NUMBER_SIZE
        at = self._text.find(self._mark)
        if at == 0 and len(self._text) >= size:
            number = int.from_bytes(self._text[MARK_SIZE:size], "big")
            if self._meet_mark(number):
                self._look_at(size)
        elif at > 0:
            self._keep_text(at)
        else:
            held = _possible_mark(self._text, self._mark, size)
            self._keep_text(len(self._text) - held)
            if held and not self._read_pipe():
                self._keep_text(held)

    def _keep_text(self, size: int) -> None:
        self._plain += self._text[:size]
        self._look_at(size)

    def _look_at(self, size: int) -> None:
        del self._text[:size]
        self._looked_at += size

    def _meet_mark(self, number: int) -> bool:
        """Pass on the event of this number; return False while it may still come."""
        found = self._numbered.pop(number, None)
        if found is not None:
            self._numbered_bytes -= found[0]
            self._pass_on(found[1])
            return True
        if len(self._answers) > MAX_ANSWERS or self._answers_bytes > MAX_ANSWERS_BYTES:
            return True
        # The frame was sent before its mark, so it is there, unless the mark is forged.
        frame = self._next_frame()
        if frame is not None:
            self._sort_in(frame)
            return False
        return not self._read_socket()

    def _answer(self) -> None:
        """Pass on the first answer, or first an event before it whose mark never came."""
        if self._numbered:  # user code had closed the pipe
            self._release()
            return
        _, frame = self._answers.popleft()
        if not self._answers:
            self._answers_bytes = 0
        self._pass_on(frame)

    def _release(self) -> None:
        _, (weight, frame) = self._numbered.popitem(last=False)
        self._numbered_bytes -= weight
        self._pass_on(frame)

    def _pass_on(self, frame: Frame) -> None:
        self._pass_on_text()
        self._on_frame(*frame)

    def _pass_on_text(self) -> None:
        if self._plain:
            text = bytes(self._plain)
            self._plain.clear()
            self._on_text(text)


def _check_weight(header: bytearray) -> None:
    # Each weighs at most eight for a byte, and most are short.
    if len(header) * 8 > MAX_WEIGHT and weight.weight_of(bytes(header), MAX_WEIGHT) > MAX_WEIGHT:
        raise frames.FrameError("a header is made of too many values")


def _waiting_in(pipe: int) -> int:
    """How many bytes there are to read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _possible_mark(text: bytes | bytearray, mark: bytes, size: int) -> int:
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

    def pending(self) -> bytes:
        """Take the bytes of a character that is not complete."""
        pending, _ = self._decoder.getstate()
        self._decoder.reset()
        return pending


def field_of(header: frames.Header, name: str, kind: type, default: Any = None) -> Any:
    """Return a field of a hostile header if it has the right type, else the default."""
    value = header.get(name, default)
    return value if type(value) is kind else default
