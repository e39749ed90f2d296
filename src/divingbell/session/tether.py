"""The tether: the host's end of the line to one interpreter. Everything that arrives is hostile.

A socket for frames both ways, and a pipe for text. The intake reads them and puts in order what
they bring; here it is decided when, and frames are sent. A frame that breaks the rules closes the
line; the session then starts a new interpreter.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable

from divingbell.session.intake import MARK_SIZE, READ_SIZE, Intake, OnFrame, OnText
from divingbell.shares.host_time import SLICE, HostTime
from divingbell_inside import frames

MAX_STEPS = 256
"""Steps in a row: a step takes in one frame, one mark or one read. Then others have their turn."""
REST = 0.003
"""Seconds between reads while text pours in. A reader that is always there is woken for every
line, which takes writer and reader longer than the line itself."""
MAX_BACKLOG = 64 << 20
"""Bytes that wait to be read by the other side; answers beyond that wait in turn."""


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
        self._on_closed = on_closed
        self._host_time = host_time
        self._loop = asyncio.get_running_loop()
        self._mark = secrets.token_bytes(MARK_SIZE)
        self._unsent = bytearray()
        self._relieved = asyncio.Event()
        self._paused = False
        self._resting: asyncio.TimerHandle | None = None
        self._pipe_resting: asyncio.TimerHandle | None = None
        self._going_on: asyncio.Handle | None = None
        self._last_text = 0.0
        self._watched: set[int] = set()
        self.closed = False
        self._socket, theirs = socket.socketpair()
        self._pipe, their_pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(their_pipe, True)
        self._socket.setblocking(False)
        self._ends: tuple[socket.socket, int] | None = (theirs, their_pipe)
        self._intake = Intake(self._socket, self._pipe, self._mark, on_text, on_frame)
        self._watch()

    def hand_over(self) -> list[int]:
        """Return the descriptors for the other side; call `handed_over` once they are sent."""
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

    # Times to read

    def pause(self) -> None:
        """Stop reading: whoever writes must wait."""
        self._paused = self._intake.stopped = True
        self._watch()

    def resume(self) -> None:
        if self._paused:
            self._paused, self._intake.stopped = False, self.closed
            self._watch()
            self._loop.call_soon(self._pump)  # for what has been read and not passed on

    def _watch(self) -> None:
        """Have the loop tell us of what we are ready to read, and of nothing else."""
        awake = not (self.closed or self._paused or self._resting)
        wanted = awake and not self._intake.socket_ended
        self._watch_one(self._socket.fileno(), wanted, self._see_socket)
        wanted = awake and not (self._intake.pipe_ended or self._pipe_resting)
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
        self._intake.socket_ready = True
        self._pump()

    def _see_pipe(self) -> None:
        self._intake.pipe_ready = True
        now = self._loop.time()
        if now - self._last_text < REST and not self._intake.pipe_was_full:
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
        if more or self._intake.socket_ended:
            self._pump()

    def close(self) -> None:
        """Let go of both ends. What is still in the pipe is read first, within reason."""
        if self.closed:
            return
        try:
            self._paused = self._intake.stopped = False
            with contextlib.suppress(OSError, frames.FrameError):
                self._intake.take_last_words()
        finally:
            self.closed = self._intake.stopped = True
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
            more = self._intake.take_steps(MAX_STEPS, self._host_time.slice)
        except (OSError, frames.FrameError) as error:
            self._intake.broken = True
            self._fail(str(error))
            more = False
        rest = self._host_time.charge(time.thread_time() - began)
        if self.closed:
            return
        if rest > SLICE or (more and rest):
            self._rest(max(rest, SLICE), more)
        elif more:
            self._going_on = self._loop.call_soon(self._go_on)
        elif self._intake.socket_ended:
            self._fail("the interpreter has closed its line")
