"""Buckets: what each of many users may take of something in a time.

A bucket holds the whole amount, so that a burst passes, and fills up again evenly. What was taken
beyond it is owed, and paid back by waiting: over a long time nobody has more than the rate.
"""

from collections import OrderedDict
from collections.abc import Callable

LOOKED_AT = 2
"""Buckets that each taking looks at, and forgets if they are full again: more than the one that it
may add, so that all are come to, and never many at once."""
EXACT = 1e-6
"""Seconds; less than that is no wait but rounding."""


class Buckets:
    """A bucket for each name that has taken something of late: one number each.

    `amount` is what a bucket holds, and what flows into it in that many `seconds`.
    """

    def __init__(self, amount: float, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._each = seconds / amount
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When a bucket is full again, by name. Who is not here has a full one."""

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, name: str, amount: float = 0.0) -> float:
        """Return the seconds until a bucket has this amount; 0 if it has it now.

        With an amount of 0: until nothing is owed; below 0: until no more than that is.
        """
        until_full = self._full_at.get(name, 0.0) - self._clock()
        wait = until_full + amount * self._each - self._seconds
        return wait if wait > EXACT else 0.0

    def is_overdrawn(self, name: str) -> bool:
        """Return whether as much is owed as a whole bucket holds."""
        return self.wait(name) >= self._seconds

    def take(self, name: str, amount: float) -> None:
        """Take an amount out of a bucket, whether it has as much or not."""
        now = self._clock()
        self._full_at[name] = max(self._full_at.get(name, now), now) + amount * self._each
        self._forget_some(now)

    def _forget_some(self, now: float) -> None:
        for _ in range(min(LOOKED_AT, len(self._full_at))):
            name, full_at = self._full_at.popitem(last=False)
            if full_at > now:
                self._full_at[name] = full_at  # at the end: the others have their turn first
