"""The intake: text and frames from one interpreter, put in order. Everything in it is hostile.

Text comes down a pipe, labelled events come as frames on a socket, and marks in the pipe say
where among the text an event belongs (see `divingbell_inside.output`). All of it is taken in by
small steps, a few at a time: one event loop serves many sessions, and what one of them sends must
not hold up the others. When that is done is up to the tether.
"""

import codecs
import fcntl
import os
import socket
import sys
import termios
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from divingbell.shares import weight
from divingbell_inside import frames

READ_SIZE = 1 << 16
"""Bytes that a pipe holds. Measured: a larger buffer, made for each read, costs ten times as much
as the read."""
CLOSING = 0.003
"""Seconds for what is still in the pipe when the line is closed: last words, or a flood."""
MAX_PENDING = 10_000
MAX_PENDING_BYTES = 64 << 20
"""Events that wait for their marks."""
MAX_ANSWERS = 1000
MAX_ANSWERS_BYTES = 20 << 20
"""Answers that wait for text before them; a forged mark may not make us take in more."""
MAX_EVENT_HEADER = 1 << 14
MAX_WEIGHT = 200_000
"""Of a header (see `divingbell.shares.weight`). Measured: it is parsed within 20 ms. 20,000
lists weigh this; the value of a cell is in the body."""
HEADER_WEIGHT = 25
"""A megabyte of JSON can be this many megabytes of objects."""
PENDING_COST = 1 << 10
MARK_SIZE = 16

OnText = Callable[[bytes], None]
OnFrame = Callable[[frames.Header, bytes], None]
Frame = tuple[frames.Header, bytes]


class Intake:
    """Reads a socket and a pipe, and passes on what they bring in the order that marks tell.

    `on_text` gets raw text, `on_frame` gets every frame in its place.
    """

    def __init__(
        self, line: socket.socket, pipe: int, mark: bytes, on_text: OnText, on_frame: OnFrame
    ) -> None:
        self._socket = line
        self._pipe = pipe
        self._mark = mark
        self._on_text = on_text
        self._on_frame = on_frame
        self._decoder = frames.Decoder(check_weight)
        self._text = bytearray()
        """Out of the pipe, not looked at yet."""
        self._unmarked = bytearray()
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
        self.stopped = False
        """Whether no further step is to be taken: whoever gets a frame may say so."""
        self.socket_ready = self.pipe_ready = False
        self.socket_ended = self.pipe_ended = False
        self.broken = False
        """Whether a frame has broken the rules: none after it is believed."""
        self.pipe_was_full = False

    def take_steps(self, most: int, seconds: float) -> bool:
        """Take in what has arrived; return whether something is left for the next time.

        Raises:
            OSError: a line can't be read.
            FrameError: a frame breaks the rules.
        """
        ends = time.perf_counter() + seconds
        try:
            for _ in range(most):
                if self.stopped or not self._step():
                    return False
                if time.perf_counter() > ends:
                    break
            return True
        finally:
            self._pass_on_text()

    def take_last_words(self) -> None:
        """Take in what is still there, within reason; raises as `take_steps`."""
        self.pipe_ready = True
        ends = time.perf_counter() + CLOSING
        self.take_steps(sys.maxsize, CLOSING)
        while self._numbered and time.perf_counter() < ends:
            self._release()

    def _step(self) -> bool:
        """Do one small piece of work; return False where there was none."""
        if self._answers and self._looked_at >= self._answers[0][0]:
            self._answer()
        elif self._text:
            self._take_text()
        elif self._answers or self.pipe_ready:
            self._read_pipe()
        elif (frame := self._next_frame()) is not None:
            self._sort_in(frame)
        elif self.socket_ready:
            self._read_socket()
        else:
            return False
        return True

    def _next_frame(self) -> Frame | None:
        return None if self.broken else self._decoder.next_frame()

    def _read_socket(self) -> bool:
        """Read once; return whether there was anything."""
        self.socket_ready = False
        if self.broken:
            return False
        try:
            data = self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return False
        self._decoder.feed(data)
        self.socket_ended = not data
        return bool(data)

    def _read_pipe(self) -> bool:
        """Read once; return whether there was anything."""
        self.pipe_ready = False
        try:
            data = os.read(self._pipe, READ_SIZE)
        except BlockingIOError:
            data = b""
        else:
            self.pipe_ended = not data  # every writer is gone; the socket will say so too
            # Of one that was full there is more to come at once: its writer waits for us. It may
            # hold less than its size then, as it is filled by pages.
            self.pipe_was_full = self.pipe_ready = len(data) > READ_SIZE // 2
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
        self._unmarked += self._text[:size]
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
        if self._unmarked:
            text = bytes(self._unmarked)
            self._unmarked.clear()
            self._on_text(text)


def check_weight(header: bytearray) -> None:
    """Raise FrameError for a header that would take too long to parse."""
    if weight.is_heavier(header, MAX_WEIGHT):
        raise frames.FrameError("a header is made of too many values")


def _waiting_in(pipe: int) -> int:
    """Return the number of bytes that there are to read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _possible_mark(text: bytes | bytearray, mark: bytes, size: int) -> int:
    """Return the number of bytes at the end that may be the start of a mark, not all arrived."""
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
