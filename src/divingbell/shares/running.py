"""The sessions that run cells at this moment, in this process."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator

MOMENT = 0.1
"""Seconds for which a session counts as one that runs cells, after its last."""


class Cells:
    """The sessions that run cells now, or did so a moment ago, in this process."""

    def __init__(self) -> None:
        self._running: Counter[object] = Counter()
        self._ended: tuple[object, float] = (None, 0.0)
        self._ended_before: tuple[object, float] = (None, 0.0)
        """The last session whose cell has ended, and the last other one."""

    @contextlib.contextmanager
    def run(self, session: object) -> Iterator[None]:
        """Count the session as one that runs a cell, for the length of the block."""
        self._running[session] += 1
        try:
            yield
        finally:
            self._running[session] -= 1
            if not self._running[session]:
                del self._running[session]
            if self._ended[0] != session:
                self._ended_before = self._ended
            self._ended = (session, time.monotonic())

    @property
    def running(self) -> bool:
        """Whether any session runs a cell."""
        return bool(self._running)

    def beside(self, session: object) -> bool:
        """Whether another session runs cells."""
        if len(self._running) > (session in self._running):
            return True
        other, when = self._ended if self._ended[0] != session else self._ended_before
        return other is not None and time.monotonic() - when < MOMENT


cells = Cells()
