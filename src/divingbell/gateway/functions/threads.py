"""Threads for functions that are not async: a bounded number, shared between users and sessions.

A function that hangs can't be ended, and keeps its thread. So there are never more than a fixed
number of threads, no session and no user can take them all, and none of them keeps the program
from ending.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from divingbell.errors import ToolFailed
from divingbell.gateway.context import CallContext

MOST = 64
MOST_OF_A_SESSION = 16
PATIENCE = 10.0
"""Seconds that a call waits for a thread."""

Charge = Callable[[float], object]
Job = Callable[[], None]
_Whose = tuple[str, str]
"""Whether it is a session or a user, and which."""


class Threads:
    """Threads that stay, made as they are needed."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0
        self._of: Counter[_Whose] = Counter()
        """The threads that work for a session, and for a user: also for those that have ended."""
        self._freed = asyncio.Event()
        """Set when a thread has become free; another takes its place then."""

    async def begin(
        self, context: CallContext, work: Callable[[], Any], charge: Charge
    ) -> asyncio.Future[Any]:
        """Begin work in a thread, in the context of this task; return the future of its outcome.

        `charge` gets the processor time that it took, however it ends.

        Raises:
            ToolFailed: no thread became free.
        """
        whose: tuple[_Whose, _Whose] = ("session", context.key), ("user", context.user)
        await self._take_place(*whose)
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()
        variables = contextvars.copy_context()

        def ended(value: Any, error: BaseException | None, seconds: float) -> None:
            self._give_place_back(*whose)
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
                value = variables.run(work)
            except BaseException as raised:  # also sys.exit: the thread is for others, too
                error = raised
            # The loop may have ended meanwhile: then nobody is left to be told.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended, value, error, time.thread_time() - began)

        if self._busy > self._started:
            self._started += 1
            threading.Thread(target=self._work, name="divingbell-function", daemon=True).start()
        self._jobs.put(job)
        return outcome

    def stop(self) -> None:
        """End the threads, each when it has nothing more to do."""
        for _ in range(self._started):
            self._jobs.put(None)

    async def _take_place(self, session: "_Whose", user: "_Whose") -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._has_place(session, user):
                    await self._freed.wait()
        except TimeoutError:
            raise ToolFailed(
                f"no thread became free in {PATIENCE:g} s: {self._busy} calls of functions are "
                f"under way ({MOST_OF_A_SESSION} of a session and {MOST} of all are the most, and "
                "of one user half of those that others leave): make fewer at once, or wait until "
                "some have ended",
                "tool_limit",
            ) from None
        self._busy += 1
        self._of.update((session, user))

    def _has_place(self, session: "_Whose", user: "_Whose") -> bool:
        """Whether there is one, and others find one after it: nobody can take them all."""
        left = MOST - self._busy
        own = self._of[user]
        return left > 0 and self._of[session] < MOST_OF_A_SESSION and 2 * own < left + own

    def _give_place_back(self, *whose: "_Whose") -> None:
        self._busy -= 1
        for each in whose:
            self._of[each] -= 1
            if not self._of[each]:
                del self._of[each]
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # and the arguments with it


def _raisable(error: BaseException) -> BaseException:
    """The error, or one in its place where a future refuses to hold it."""
    return RuntimeError("it raised StopIteration") if isinstance(error, StopIteration) else error
