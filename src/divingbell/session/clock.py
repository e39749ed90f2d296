"""The clock of a cell. It stands still while a tool is awaited, and only then."""

import asyncio
from collections.abc import Callable

BRIEF = 0.005
"""Seconds; calls that take less are not worth a look at the processor time."""
LOOK = 0.1
"""Seconds between looks while it stands."""


class Clock:
    """The clock of one cell: it calls `on_timeout` when the cell has had its time, and
    `on_ceiling` when it is over regardless.

    While a call is under way, what counts is the processor time that the session uses, not the
    time that passes: code that goes on computing beside a slow call pays for it, and no word of
    the session's has to be believed.
    """

    def __init__(
        self,
        timeout: float,
        ceiling: float,
        cpu_seconds: Callable[[], float],
        on_timeout: Callable[[], None],
        on_ceiling: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._cpu_seconds = cpu_seconds
        self._on_timeout = on_timeout
        self._started = self._loop.time()
        self._stood = 0.0
        self._calls = 0
        self._standing: tuple[float, float] | None = None
        """Since when, and the processor time then."""
        self._about_to_stand: asyncio.TimerHandle | None = None
        self._on_ceiling = on_ceiling
        self._ceiling = max(ceiling, timeout)
        self._check = self._loop.call_later(timeout, self._look)

    def call_began(self) -> None:
        self._calls += 1
        if self._calls == 1:
            self._about_to_stand = self._loop.call_later(BRIEF, self._stand)

    def call_ended(self) -> None:
        self._calls -= 1
        if self._calls == 0:
            self._cancel_standing()
            self._stood += self._standing_for()
            self._standing = None

    def stop(self) -> None:
        self._check.cancel()
        self._cancel_standing()

    def _stand(self) -> None:
        self._standing = self._loop.time(), self._cpu_seconds()

    def _cancel_standing(self) -> None:
        if self._about_to_stand is not None:
            self._about_to_stand.cancel()
            self._about_to_stand = None

    def _standing_for(self) -> float:
        if self._standing is None:
            return 0.0
        since, cpu = self._standing
        return max(self._loop.time() - since - (self._cpu_seconds() - cpu), 0.0)

    def _look(self) -> None:
        passed = self._loop.time() - self._started
        left = self._timeout - (passed - self._stood - self._standing_for())
        if left <= 0:
            self._on_timeout()
        elif passed >= self._ceiling:
            self._on_ceiling()
        else:
            pause = left if self._standing is None else max(left, LOOK)
            self._check = self._loop.call_later(min(pause, self._ceiling - passed), self._look)
