"""The data line, read by whoever waits for something on it.

The host sends requests (run this cell, make a copy) and answers to calls of tools. A thread that
only reads would forbid the fork of a copy, so there is none: the one who waits reads, and hands
to others what is theirs. Cells in plain code, threads and event loops may all wait at once.
"""

import asyncio
import contextlib
import itertools
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from divingbell_inside import frames, output

Frame = tuple[frames.Header, bytes]
LOOK_UP = 0.1
"""Seconds after which the main thread, waiting for another that reads, looks for an interrupt."""
REPLACED = {"ok": False, "code": "tool_cancelled", "message": "the interpreter was replaced"}


class _Waiting:
    """One call that is on its way."""

    __slots__ = ("answer", "future")

    def __init__(self, future: "asyncio.Future[Any] | None" = None) -> None:
        self.future = future
        self.answer: Frame | None = None


class Line:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._data: socket.socket
        self._outlet: output.Outlet
        self._forget()

    def _forget(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._reading = False
        self._requests: deque[Frame] = deque()
        self._waiting: dict[int, _Waiting] = {}
        self._watching: dict[asyncio.AbstractEventLoop, int] = {}
        self._idle_loop: asyncio.AbstractEventLoop | None = None
        self._period = 0
        """Counts when idling begins and ends."""
        self._closed = False

    def attach(self, data: socket.socket, outlet: output.Outlet) -> None:
        """Use this socket from now on; what was asked for on an earlier one is lost."""
        lost = list(self._waiting.values())
        for loop in list(self._watching):
            loop.remove_reader(self._data)
        self._forget()
        self._data = data
        self._outlet = outlet
        self._main = threading.get_ident()
        self._poll = select.poll()
        self._poll.register(data, select.POLLIN)
        for waiting in lost:
            self._settle(waiting, (dict(REPLACED), b""))

    # Calls

    def call(self, header: frames.Header, body: bytes) -> Frame:
        """Send a call, wait for its answer."""
        waiting = _Waiting()
        number = self._send(header, body, waiting)
        try:
            self._read_until(lambda: waiting.answer is not None)
        except BaseException:
            self._give_up(number)
            raise
        finally:
            self._waiting.pop(number, None)
        assert waiting.answer is not None
        return waiting.answer

    def start(self, header: frames.Header, body: bytes, future: "asyncio.Future[Any]") -> None:
        """Send a call; the loop of the future sees to the answer, which becomes its result."""
        loop = future.get_loop()
        number = self._send(header, body, _Waiting(future))
        self._watch(loop)

        def finished(future: "asyncio.Future[Any]") -> None:
            if self._waiting.pop(number, None) is not None and future.cancelled():
                self._give_up(number)
            self._unwatch(loop)

        future.add_done_callback(finished)

    def _send(self, header: frames.Header, body: bytes, waiting: _Waiting) -> int:
        if not self._outlet.attached:
            raise RuntimeError(
                "tools can be called from the session's own process only, not from one it has "
                "started: call the tool there and pass the result on"
            )
        number = next(self._numbers)
        packed = frames.pack({"event": "call", "id": number, **header}, body)
        self._waiting[number] = waiting
        self._outlet.send(packed)
        return number

    def _give_up(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._outlet.send(frames.pack({"event": "cancel", "id": number}))

    # Requests of the host

    def next_request(self, loop: asyncio.AbstractEventLoop | None) -> Frame | None:
        """Wait for the next request; None when the host has closed the line.

        Tasks of earlier cells go on in `loop` meanwhile.
        """
        if loop is not None and not loop.is_closed() and asyncio.all_tasks(loop):
            self._period += 1
            self._idle_loop = loop
            self._watch(loop)
            if not self._requests and not self._closed:
                with contextlib.suppress(SystemExit, KeyboardInterrupt):
                    loop.run_forever()
            self._period += 1
            self._idle_loop = None
            self._unwatch(loop)
        self._read_until(lambda: bool(self._requests) or self._closed)
        return self._requests.popleft() if self._requests else None

    # Reading

    def _read_until(self, done: Callable[[], bool]) -> None:
        """Read frames, or let another thread read them, until it is done."""
        outlet = self._outlet
        main = threading.get_ident() == self._main
        if main:
            outlet.busy = True  # an interrupt may come only where nothing is half done
        try:
            while True:
                with self._changed:
                    while self._reading and not (done() or self._closed):
                        self._changed.wait(LOOK_UP if main else None)
                        if main:
                            self._heed_interrupt()
                    if done() or self._closed:
                        break
                    self._reading = True
                try:
                    if main:
                        self._await_frame()
                    else:
                        self._poll.poll()
                    self._take_in()
                finally:
                    self._stop_reading()
        finally:
            if main:
                outlet.busy = False
        if main:
            self._heed_interrupt()
        if not done():
            raise EOFError("the host has closed the line")

    def _await_frame(self) -> None:
        """In the main thread: here an interrupt comes through."""
        outlet = self._outlet
        try:
            outlet.busy = False
            self._heed_interrupt()
            self._poll.poll()
        finally:
            outlet.busy = True

    def _heed_interrupt(self) -> None:
        if self._outlet.interrupted:
            self._outlet.interrupted = False
            raise KeyboardInterrupt

    def _readable(self) -> None:
        """Called by a loop: there is something to read, unless a thread was quicker."""
        outlet = self._outlet
        main = threading.get_ident() == self._main
        if main:
            outlet.busy = True
        try:
            with self._changed:
                if self._reading or self._closed:
                    return
                self._reading = True
            try:
                if self._poll.poll(0):
                    self._take_in()
            finally:
                self._stop_reading()
        finally:
            if main:
                outlet.busy = False
        if main:
            self._heed_interrupt()

    def _stop_reading(self) -> None:
        with self._changed:
            self._reading = False
            self._changed.notify_all()

    def _take_in(self) -> None:
        """Read one frame and give it to the one it is for."""
        frame = frames.receive(self._data)
        if frame is None:
            self._closed = True
        elif frame[0].get("op") == "answer":
            waiting = self._waiting.pop(frame[0]["id"], None)
            if waiting is not None:
                self._settle(waiting, frame)
            return
        else:
            self._requests.append(frame)
        idle, period = self._idle_loop, self._period
        if idle is not None:
            idle.call_soon_threadsafe(self._stop_idling, idle, period)

    def _stop_idling(self, loop: asyncio.AbstractEventLoop, period: int) -> None:
        # One that comes late would stop the loop under the next cell.
        if period == self._period:
            self._period += 1
            loop.stop()

    @staticmethod
    def _settle(waiting: _Waiting, answer: Frame) -> None:
        future = waiting.future
        if future is None:
            waiting.answer = answer
            return

        def settle() -> None:
            if not future.done():
                future.set_result(answer)

        loop = future.get_loop()
        if asyncio._get_running_loop() is loop:
            settle()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(settle)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._watching.get(loop, 0)
        self._watching[loop] = count + 1
        if not count:
            loop.add_reader(self._data, self._readable)

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._watching.pop(loop, 0)
        if count > 1:
            self._watching[loop] = count - 1
        elif count and not loop.is_closed():
            loop.remove_reader(self._data)
