"""The processor time of the host that one session takes up, and when it is too much.

Reading what a session sends costs the host, and all sessions share one event loop. So a session
has a share of it, with some in hand for a burst. Who has used that up is slowed down to the share,
and who goes on all the same is reported to the one that can end it.
"""

import time
import weakref
from collections.abc import Callable

SHARE = 0.25
"""Of one processor, over time, for what a session sends. One that runs one small cell after another
takes 0.1."""
BURST = 1.0
"""Seconds in hand. Fifty thousand lines on stderr take about this much."""
UNNOTICED = 0.25
"""Seconds that may be taken in one go. After that it is turn and turn about."""
SLICE = 0.001
"""Seconds in a row, then others have their turn. A neighbour's small cell takes as long."""
COUNT_EVERY = 0.1
REMEMBERED = 1.0
"""Seconds for which an account counts as one that is drawn on, after the last time."""
LONGEST_REST = 0.25
"""Seconds; the word that a cell has ended may be among what waits."""


class _Noticed:
    """The accounts that are drawn on more than goes unnoticed. All of them have one share."""

    def __init__(self) -> None:
        self._drawn: weakref.WeakKeyDictionary[HostTime, float] = weakref.WeakKeyDictionary()
        self._count = 1
        self._counted = 0.0

    def count(self, account: "HostTime", now: float) -> int:
        """How many there are, this one too."""
        self._drawn[account] = now
        if now - self._counted > COUNT_EVERY:
            self._counted = now
            self._count = sum(now - drawn < REMEMBERED for drawn in self._drawn.values())
        return max(self._count, 1)

    def forget(self, account: "HostTime") -> None:
        self._drawn.pop(account, None)


_noticed = _Noticed()


class HostTime:
    """An account of processor time that fills itself up again.

    `on_overdrawn` gets the seconds that were taken since it was empty, whenever more are taken.
    Where several sessions draw much, each has its part of one share: many that flood together are
    no better off than one.
    """

    def __init__(self, on_overdrawn: Callable[[float], None]) -> None:
        self._on_overdrawn = on_overdrawn
        self._left = BURST
        self._overdrawn = 0.0
        self._among = 1
        self._looked = time.monotonic()

    def charge(self, seconds: float) -> float:
        """Take seconds off the account; return for how long the others come first."""
        now = time.monotonic()
        gained = (now - self._looked) * SHARE / self._among
        self._looked = now
        self._left = min(self._left + gained, BURST) - seconds
        if self._left > BURST - UNNOTICED:
            if self._among > 1 or self._overdrawn:
                self._recover()
            return 0.0
        among = self._among = _noticed.count(self, now)
        self._left = min(self._left, (BURST - UNNOTICED) / among)
        if self._left >= 0:
            return seconds * (2 * among - 1)
        self._overdrawn += seconds * among
        self._on_overdrawn(self._overdrawn)
        return min(-self._left * among / SHARE, LONGEST_REST)

    def _recover(self) -> None:
        self._among, self._overdrawn = 1, 0.0
        _noticed.forget(self)

    def forgive(self) -> None:
        """Begin to count anew: whoever has overdrawn it was stopped."""
        self._overdrawn = 0.0
