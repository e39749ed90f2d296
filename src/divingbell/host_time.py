"""The processor time of the host that one session takes up, and when it is too much.

Reading what a session sends costs the host, and all sessions share one event loop. So a session
has a share of it, with some in hand for a burst. Who has used that up is slowed down to the share,
and who goes on all the same is reported to the one that can end it.
"""

import time
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
LONGEST_REST = 0.25
"""Seconds; the word that a cell has ended may be among what waits."""


class HostTime:
    """An account of processor time that fills itself up again.

    `on_overdrawn` gets the seconds that were taken since it was empty, whenever more are taken.
    """

    def __init__(self, on_overdrawn: Callable[[float], None]) -> None:
        self._on_overdrawn = on_overdrawn
        self._left = BURST
        self._overdrawn = 0.0
        self._looked = time.monotonic()

    def charge(self, seconds: float) -> float:
        """Take seconds off the account; return for how long the others come first."""
        now = time.monotonic()
        gained = (now - self._looked) * SHARE
        self._looked = now
        self._left = min(self._left + gained, BURST) - seconds
        if self._left >= 0:
            if self._left > BURST / 2:
                self._overdrawn = 0.0
            return 0.0 if self._left > BURST - UNNOTICED else seconds
        self._overdrawn += seconds
        self._on_overdrawn(self._overdrawn)
        return min(-self._left / SHARE, LONGEST_REST)

    def forgive(self) -> None:
        """Begin to count anew: whoever has overdrawn it was stopped."""
        self._overdrawn = 0.0
