"""The processor time of the host that one session takes up, and when it is too much.

Reading what a session sends costs the host, and all sessions share one event loop. So a session
has a share of it, with some in hand for a burst. Who has used that up is slowed down to the share,
and who goes on all the same is reported to the one that can end it.
"""

import time
from collections.abc import Callable

from divingbell.shares.running import cells

SHARE = 0.25
"""Of one processor, over time, for what a session sends. Measured: one that runs one small cell
after another takes 0.1."""
BURST = 1.0
"""Seconds in hand. Measured: fifty thousand lines on stderr take about this much."""
UNNOTICED = 0.25
"""Seconds that may be taken in one go. After that it is turn and turn about."""
SLICE = 0.001
"""Seconds in a row, then others have their turn."""
SLICE_AMONG_OTHERS = 0.0003
"""The same while other sessions run cells. Measured: a small cell of theirs takes twice as long,
and can meet two of these."""
FULL = 0.6
"""Of one processor, taken by all sessions together: then each has its part of it."""
WINDOW = 0.25
"""Seconds over which that is looked at."""
LONGEST_REST = 0.25
"""Seconds; the word that a cell has ended may be among what waits."""


class _Everyone:
    """The time that all sessions of this process take together, and the share that each has."""

    def __init__(self) -> None:
        self._began = 0.0
        self._taken = 0.0
        self._accounts = 0
        self._share = SHARE
        self.window = 0

    def share(self, account: "HostTime", seconds: float, now: float) -> float:
        """Count what an account takes; return its share."""
        if now - self._began > WINDOW:
            self._begin(now)
        if account.window != self.window:
            account.window, account.drawn = self.window, 0.0
            self._accounts += 1
        account.drawn += seconds
        self._taken += seconds
        return self._share

    def _begin(self, now: float) -> None:
        is_full = self._taken > FULL * (now - self._began)
        self._share = min(SHARE, FULL / self._accounts) if is_full else SHARE
        self._began, self._taken, self._accounts = now, 0.0, 0
        self.window += 1


_everyone = _Everyone()


class HostTime:
    """An account of processor time that fills itself up again.

    `on_overdrawn` gets the seconds that were taken since it was empty, whenever more are taken, and
    how many times as large its share is where it has it to itself. Where sessions together take
    most of a processor, each has its part of that and nothing in hand: many that flood at once are
    no better off than one. `on_flood` hears when more is taken than goes unnoticed, and when that
    is over.
    """

    def __init__(
        self,
        on_overdrawn: Callable[[float, float], None],
        on_flood: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._on_overdrawn = on_overdrawn
        self._on_flood = on_flood
        self.is_flood = False
        self._left = BURST
        self._overdrawn = 0.0
        self._looked = time.monotonic()
        self.owner: object = None
        """The session that it belongs to, once there is one."""
        self.window = 0
        self.drawn = 0.0
        """The seconds that it has taken in this window of all accounts."""

    @property
    def slice(self) -> float:
        """The seconds that may be taken in a row now."""
        return SLICE_AMONG_OTHERS if cells.beside(self.owner) else SLICE

    def charge(self, seconds: float) -> float:
        """Take seconds off the account; return for how long the others come first."""
        now = time.monotonic()
        share = _everyone.share(self, seconds, now)
        self._left = min(self._left + (now - self._looked) * share, BURST) - seconds
        self._looked = now
        if share < SHARE and self.drawn > share * WINDOW:
            self._left = min(self._left, -seconds)
        self._tell_flood()
        if self._left >= 0:
            if self._left > BURST / 2:
                self._overdrawn = 0.0
            return 0.0 if self._left > BURST - UNNOTICED else seconds
        self._overdrawn += seconds
        self._on_overdrawn(self._overdrawn, SHARE / share)
        return min(-self._left / share, LONGEST_REST)

    def look(self) -> None:
        """Look whether a flood is over, where nothing more has come."""
        now = time.monotonic()
        self._left = min(self._left + (now - self._looked) * SHARE, BURST)
        self._looked = now
        self._tell_flood()

    def _tell_flood(self) -> None:
        # It ends later than it begins, so that none begins and ends all the time.
        enough = BURST - (UNNOTICED / 2 if self.is_flood else UNNOTICED)
        if self.is_flood != (self._left < enough):
            self.is_flood = not self.is_flood
            self._on_flood(self.is_flood)

    def forgive(self) -> None:
        """Begin to count anew: whoever has overdrawn it was stopped."""
        self._overdrawn = 0.0
