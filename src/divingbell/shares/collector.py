"""Python's garbage collector: it rests while something large is parsed.

It begins for every 700 lists and objects that are made, and now and then it looks through all that
the program holds. What is parsed has no cycles, so it finds nothing there. Measured: one call with
19,000 lists in its arguments had it begin 28 times; every fifth call had it look through all, for
5 ms in which no other thread could run, the event loop's among them.

What was made in a rest is looked through right after it, for 3 ms there, if it is still held. So a
rest may go on until whoever asked for it has let go of all that.
"""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

LONGEST_REST = 0.25
"""Seconds that a rest may go on after the work, and in which others may join it."""
SOON = 0.002
"""Seconds in which all who have worked on something let go of it, the thread that did it too."""


class Collector:
    """The collector of this process, which threads may have rest for a moment."""

    def __init__(self) -> None:
        self._guard = threading.RLock()  # the last holder of a rest may go anywhere
        self._resting = 0
        self._joined_until = 0.0
        self._was_on = False

    def at_rest(self, work: Callable[[], Made]) -> Made:
        """Do work while nothing is collected.

        Those who rest at the same time do so together, but none joins a rest that has gone on for
        long, and none puts off what is due: enough of them in a row, and nothing would be collected
        any more. A program that has switched it off finds it off afterwards.
        """
        begun = self._begun()
        try:
            return work()
        finally:
            if begun is not None:
                begun.end()

    def rest(self) -> "Rest":
        """Return a rest that may go on after the work for which it begins."""
        return Rest(self._begun)

    def _begun(self) -> "_Begun | None":
        """Begin a rest or join one, if that may be now; return what ends it."""
        with self._guard:
            if not self._may_rest():
                return None
            self._resting += 1
        return _Begun(self._end)

    def _may_rest(self) -> bool:
        if self._resting:
            return time.monotonic() < self._joined_until
        if gc.get_count()[0] > gc.get_threshold()[0]:
            return False
        self._joined_until = time.monotonic() + LONGEST_REST
        self._was_on = gc.isenabled()
        gc.disable()
        return True

    def _end(self) -> None:
        with self._guard:
            self._resting -= 1
            if self._resting == 0 and self._was_on:
                gc.enable()

    def renew(self) -> None:
        """Begin anew, in a process that was forked: threads that would end a rest are not there."""
        if self._resting and self._was_on:
            gc.enable()
        self.__init__()  # type: ignore[misc]


class _Begun:
    """A rest that has begun. It ends once, and also when nobody holds this any more."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._once = threading.Lock()

    def end(self) -> None:
        if self._once.acquire(blocking=False):
            self._end()

    __del__ = end


class Rest:
    """A rest that may go on after the work. It belongs to the event loop on which it is made; the
    work may be done in a thread. When the loop ends, so does it."""

    def __init__(self, begin: Callable[[], _Begun | None]) -> None:
        self._begin = begin
        self._begun: _Begun | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def begin_with(self, work: Callable[[], Made]) -> Made:
        """Do work at rest. As with `at_rest`, there may be none."""
        self._begun = self._begin()
        return work()

    def end_within(self, seconds: float) -> None:
        """End it after so many seconds, whoever holds this then."""
        if self._timer is not None:
            self._timer.cancel()
        if self._begun is not None and not self._loop.is_closed():
            self._timer = self._loop.call_later(seconds, self._begun.end)


COLLECTOR = Collector()
os.register_at_fork(after_in_child=COLLECTOR.renew)
