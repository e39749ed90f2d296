"""Writing behind: items are taken at once, and written in a thread, as many together as wait."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

CLOSE_TIMEOUT = 5.0
"""Seconds that the end waits for a disk that hangs."""

Item = TypeVar("Item")


class WriteBehind(Generic[Item]):
    """Has items written in a thread of its own, and never waits for it.

    `write` gets what waits; it reports what goes wrong itself. `finish` comes after the last of it.
    `gathering` is for how many seconds the first of a batch waits for others.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[Item]], None],
        finish: Callable[[], None] = lambda: None,
        gathering: float = 0.0,
    ) -> None:
        self._write = write
        self._finish = finish
        self._gathering = gathering
        self._waiting: list[Item] = []
        self._guard = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._writing: Future[None] | None = None
        self._closed = False
        self._closing = threading.Event()

    def add(self, item: Item, most: int) -> bool:
        """Have an item written; False where `most` wait already, or it is closed."""
        with self._guard:
            if self._closed or len(self._waiting) >= most:
                return False
            self._waiting.append(item)
            if self._writing is None or self._writing.done():
                self._writing = self._thread.submit(self._run)
        return True

    async def close(self) -> None:
        """Write what waits, for a limited time. May be called again."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            self._closing.set()
            writing = self._thread.submit(self._end)
        self._thread.shutdown(wait=False)
        # Not as a future of the loop: one that runs out of time would cancel what has not begun.
        await asyncio.to_thread(wait, [writing], CLOSE_TIMEOUT)

    def _end(self) -> None:
        self._run()
        self._finish()

    def _run(self) -> None:
        while True:
            self._closing.wait(self._gathering)
            with self._guard:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._writing = None  # under the guard: what comes next starts another
                    return
            self._write(batch)
