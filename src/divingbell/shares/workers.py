"""Workers: the few threads that long work for sessions is done in, for all sessions together.

Only one thread of a process runs Python at a time, so more of them finish nothing sooner. But the
event loop waits for each of those before it: measured, beside the work of 20 sessions at once, for
280 ms; beside that of two, for 10.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from divingbell.shares import loop_thread

MOST = 2
Made = TypeVar("Made")


class Workers:
    """Does work in threads, a little at a time; those who come first are served first."""

    def __init__(self) -> None:
        # One that loses its processor while it holds the interpreter keeps the event loop waiting.
        self._pool = ThreadPoolExecutor(
            MOST, thread_name_prefix="divingbell-work", initializer=loop_thread.go_first
        )
        self._gate = threading.BoundedSemaphore(MOST)

    async def do(self, work: Callable[[], Made]) -> Made:
        """Do work in a thread, in the context of this task."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(self.here, work))

    def here(self, work: Callable[[], Made]) -> Made:
        """Do work in this thread, which is none of the event loop's, when it is its turn."""
        with self._gate:
            return work()

    def renew(self) -> None:
        """Begin anew, in a process that was forked: threads are not."""
        self.__init__()  # type: ignore[misc]


WORKERS = Workers()
os.register_at_fork(after_in_child=WORKERS.renew)
