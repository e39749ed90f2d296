"""Threads for functions that are not async: a bounded number, and each session has a share.

A function that hangs can't be ended, and keeps its thread. So there are never more than a fixed
number of threads, one session can't take them all, and none of them keeps the program from ending.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from divingbell.errors import ToolFailed

MOST = 64
MOST_OF_A_SESSION = 16
PATIENCE = 10.0
"""Seconds that a call waits for a thread."""

Charge = Callable[[float], object]
Job = Callable[[], None]


class Threads:
    """Threads that stay, made as they are needed."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0
        self._places = asyncio.Semaphore(MOST)
        self._shares: dict[str, asyncio.Semaphore] = {}

    async def begin(
        self, session: str, work: Callable[[], Any], charge: Charge
    ) -> asyncio.Future[Any]:
        """Begin work in a thread, in the context of this task; return the future of its outcome.

        `charge` gets the processor time that it took, however it ends.

        Raises:
            ToolFailed: no thread became free.
        """
        share = self._shares.setdefault(session, asyncio.Semaphore(MOST_OF_A_SESSION))
        await self._take_place(share)
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def ended(value: Any, error: BaseException | None, seconds: float) -> None:
            self._busy -= 1
            self._places.release()
            share.release()
            charge(seconds)
            if outcome.done():  # nobody waits any more
                return
            if error is None:
                outcome.set_result(value)
            else:
                outcome.set_exception(_raisable(error))

        def job() -> None:
            value, error, began = None, None, time.thread_time()
            try:
                value = context.run(work)
            except BaseException as raised:  # also sys.exit: the thread is for others, too
                error = raised
            # The loop may have ended meanwhile: then nobody is left to be told.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended, value, error, time.thread_time() - began)

        self._busy += 1
        if self._busy > self._started:
            self._started += 1
            threading.Thread(target=self._work, name="divingbell-function", daemon=True).start()
        self._jobs.put(job)
        return outcome

    def forget(self, session: str) -> None:
        """Forget the share of a session that has ended; what it runs ends by itself."""
        self._shares.pop(session, None)

    def stop(self) -> None:
        """End the threads, each when it has nothing more to do."""
        for _ in range(self._started):
            self._jobs.put(None)

    async def _take_place(self, share: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await share.acquire()
                try:
                    await self._places.acquire()
                except BaseException:
                    share.release()
                    raise
        except TimeoutError:
            raise ToolFailed(
                f"no thread became free in {PATIENCE:g} s: {self._busy} calls of functions are "
                f"under way ({MOST_OF_A_SESSION} of a session, {MOST} of all are the most): "
                "make fewer at once, or wait until some have ended",
                "tool_limit",
            ) from None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # and the arguments with it


def _raisable(error: BaseException) -> BaseException:
    """The error, or one in its place where a future refuses to hold it."""
    return RuntimeError("it raised StopIteration") if isinstance(error, StopIteration) else error
