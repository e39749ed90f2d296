"""The start of the sandbox, in a task that others can wait for."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from divingbell import logs
from divingbell.errors import SessionClosed
from divingbell.host import beside

log = logs.logger("divingbell")

STOP_TIMEOUT = 20.0
HEARTBEAT = 5.0
"""Seconds after which whoever waits is told again: some clients give up on a silent server."""

Progress = Callable[[str], None]
Tell = Callable[[str], Awaitable[None]]


class Starting:
    """Starts something in a task of its own; others wait for it, and hear what it is doing."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or log.info
        self._step = ""
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._task: asyncio.Task[Any] | None = None

    def report(self, line: str) -> None:
        """Take a line about how it goes, from any thread."""
        self._progress(line)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(self._hear, line)

    def _hear(self, line: str) -> None:
        news, self._news = self._news, self._loop.create_future()
        self._step = line
        news.set_result(None)

    def begin(self, work: Awaitable[Any]) -> None:
        """Start it."""
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(beside.heard)

    async def wait(self, tell: Tell | None = None) -> None:
        """Return once it is up; `tell` hears what is waited for, and again every few seconds.

        Raises: what kept it from starting.
        """
        assert self._task is not None
        while not self._task.done():
            news = self._news
            if tell is not None:
                await tell(self._how_far())
            await asyncio.wait(
                (self._task, news), timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
            )
        if self._task.cancelled():
            raise SessionClosed("Divingbell has been closed")
        if (error := self._task.exception()) is not None:
            raise error.with_traceback(None)  # else it would grow with everybody who asks

    @property
    def is_up(self) -> bool:
        """Whether it has started, and nothing kept it from it."""
        task = self._task
        return task is not None and task.done() and not task.cancelled() and not task.exception()

    def _how_far(self) -> str:
        passed = f"the sandbox is starting ({self._loop.time() - self._began:.0f} s)"
        return f"{passed}: {self._step}" if self._step else passed

    async def stop(self) -> None:
        """Give it up, unless it is up already."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_TIMEOUT)
