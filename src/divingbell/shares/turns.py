"""Turns on the event loop: those of a session's calls of tools, and those of all others."""

import asyncio
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from divingbell.shares.host_time import LONGEST_REST, UNNOTICED
from divingbell.shares.running import cells

SHARE = 0.5
"""Of one processor, for what a session's calls of tools take. Measured: in a loop they take 0.3,
and tasks of the SDK, which nobody counts, take as much again."""
SHARE_AMONG_OTHERS = 0.2
"""The same while other sessions run cells too."""
SLICE = 0.0005
"""Seconds in a row, while other sessions run cells."""
Value = TypeVar("Value")


class Turns:
    """Shares the event loop between what one session has under way and all else.

    The work is done in steps. However many could be taken at once: while others run cells, those of
    a session take half a millisecond, and then the others come first for as long as its share says.
    """

    def __init__(self, session: object) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._left = UNNOTICED
        self._looked = self._loop.time()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.TimerHandle | None = None
        self.thread = asyncio.Lock()
        """Held while a thread works for the session."""
        self.not_before = 0.0
        """The time from which the next step may be taken, by the loop's clock."""

    def charge(self, seconds: float) -> None:
        """Count processor time that was spent on the session."""
        share, most = SHARE, UNNOTICED
        if cells.beside(self._session):
            share, most = SHARE_AMONG_OTHERS, SLICE
        now = self._loop.time()
        self._left = min(self._left + (now - self._looked) * share, most) - seconds
        self._looked = now
        if self._left < 0:
            self.not_before = now + min(-self._left / share, LONGEST_REST)

    @types.coroutine
    def take(self, work: Coroutine[Any, Any, Value]) -> Generator[Any, Any, Value]:
        """Do the work of a coroutine step by step, each in its turn."""
        step: Callable[[Any], Any] = work.send
        given: Any = None
        while True:
            began = time.thread_time()
            try:
                awaited = step(given)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            finally:
                self.charge(time.thread_time() - began)
            try:
                step, given = work.send, (yield awaited)
                if self._waiting or self._loop.time() < self.not_before:
                    yield from self._turn().__await__()
            except BaseException as error:  # a cancellation, mostly: it is for the work itself
                step, given = work.throw, error

    async def _turn(self) -> None:
        """Return when it is the turn of whoever waits here: one after the other."""
        mine = self._loop.create_future()
        self._waiting.append(mine)
        if self._next is None:
            self._next = self._loop.call_at(self.not_before, self._let_one_in)
        await mine

    def _let_one_in(self) -> None:
        self._next = None
        while self._waiting and self._waiting[0].done():  # it was cancelled
            self._waiting.popleft()
        if self._waiting and self._loop.time() >= self.not_before:
            self._waiting.popleft().set_result(None)
        if self._waiting:
            self._next = self._loop.call_at(self.not_before, self._let_one_in)
