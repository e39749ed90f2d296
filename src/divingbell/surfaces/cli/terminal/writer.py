"""The writer to stdout and stderr, in a thread of its own.

A reader that is slow (`| less`) holds up whoever writes. It must not hold up the event loop:
that one watches the clock of the cell and listens for Ctrl-C.
"""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue

STDOUT, STDERR = 1, 2

Item = tuple[int, bytes] | Callable[[], None]


class Writer:
    """Writes everything in the order in which it was given, whichever the descriptor.

    `on_failure` is called on the loop, once, when nobody reads any more or the disk is full;
    `failure` says what it was. What is written afterwards is dropped.
    """

    def __init__(self, on_failure: Callable[[], object] = lambda: None) -> None:
        self.failure: OSError | None = None
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._items: SimpleQueue[Item] = SimpleQueue()
        # A daemon: one that is stuck in a write must not keep the process from ending.
        threading.Thread(target=self._work, name="divingbell-writer", daemon=True).start()

    def write(self, descriptor: int, text: str) -> None:
        """Write the text, some time soon."""
        if text:
            self._items.put((descriptor, text.encode("utf-8", "backslashreplace")))

    async def drain(self) -> None:
        """Wait until all is out.

        Raises:
            OSError: it could not be written.
        """
        done = asyncio.Event()
        self._items.put(lambda: self._call_on_loop(done.set))
        await done.wait()
        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        while True:
            item = self._items.get()
            if callable(item):
                item()
            elif self.failure is None:
                try:
                    _write_all(*item)
                except OSError as error:
                    self.failure = error
                    self._call_on_loop(self._on_failure)

    def _call_on_loop(self, callback: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # someone else has made the terminal non-blocking
            select.select((), (descriptor,), ())
