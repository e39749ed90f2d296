"""Counts calls against the budgets and rates of the policy, before they are made."""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from divingbell.amounts import rate
from divingbell.errors import ToolFailed
from divingbell.settings.policy import Policy

if TYPE_CHECKING:
    from limits import RateLimitItem


class Budgets(Protocol):
    """The budgets and rates, as the pipeline uses them: `Meter`, or one that several share."""

    async def reserve(self, session: str, user: str, cell: int = 0) -> None: ...

    def used(self, session: str) -> int: ...

    def end_run(self, session: str) -> None:
        """Hear that a cell of a session has ended."""

    async def forget(self, session: str) -> None: ...


class Meter:
    """What sessions and users have used. One for a whole Divingbell, on one event loop."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sessions: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._cells: dict[str, tuple[int, int]] = {}
        """The cell that a session is in, and its calls."""
        self._rates = Rates(policy) if policy.rate_per_session or policy.rate_per_user else None

    @property
    def has_rates(self) -> bool:
        """Whether rates are counted, which `count` leaves out."""
        return self._rates is not None

    async def reserve(self, session: str, user: str, cell: int = 0) -> None:
        """Count one call, or refuse it. A call that fails later stays counted.

        Raises:
            ToolFailed: a budget is used up, or a rate is exceeded.
        """
        self.count(session, user, cell)
        if self._rates is not None:
            try:
                await self._rates.hit(session, user)
            except BaseException:
                self.release(session, user, cell)
                raise

    def count(self, session: str, user: str, cell: int = 0) -> None:
        """Count one call against the budgets, or refuse it.

        Raises:
            ToolFailed: a budget is used up.
        """
        policy = self._policy
        in_cell, made = self._cells.get(session, (cell, 0))
        made = made if in_cell == cell else 0
        _check("calls_per_cell", policy.calls_per_cell, made, "filter or batch, or use more cells")
        used = self._sessions[session]
        _check("calls_per_session", policy.calls_per_session, used, "open another session")
        used = self._users[user]
        _check("calls_per_user", policy.calls_per_user, used, "ask whoever runs Divingbell")
        # Nothing is awaited before this: of calls that come at once, none slips through.
        self._cells[session] = (cell, made + 1)
        self._sessions[session] += 1
        self._users[user] += 1

    def room(self, session: str, user: str, cell: int) -> int | None:
        """Return how many more calls a cell may make; None where there is no budget."""
        policy = self._policy
        in_cell, made = self._cells.get(session, (cell, 0))
        budgets = (
            (policy.calls_per_cell, made if in_cell == cell else 0),
            (policy.calls_per_session, self._sessions[session]),
            (policy.calls_per_user, self._users[user]),
        )
        return min((most - used for most, used in budgets if most), default=None)

    def release(self, session: str, user: str, cell: int = 0, count: int = 1) -> None:
        """Give calls back to the budgets that were reserved and not made."""
        in_cell, made = self._cells.get(session, (cell, 0))
        if in_cell == cell and made:
            self._cells[session] = (cell, max(0, made - count))
        for counts, name in ((self._sessions, session), (self._users, user)):
            if counts[name] > count:
                counts[name] -= count
            else:
                del counts[name]

    def end_run(self, session: str) -> None:
        """Hear that a cell of a session has ended; its calls are counted until the next one."""

    def used(self, session: str) -> int:
        """Return how many calls a session has made."""
        return self._sessions[session]

    async def forget(self, session: str) -> None:
        """Forget a session that has ended."""
        self._sessions.pop(session, None)
        self._cells.pop(session, None)
        if self._rates is not None:
            await self._rates.forget(session)


def _check(name: str, most: int, used: int, advice: str) -> None:
    if most and used >= most:
        raise ToolFailed(
            f"all {most:,} calls are used ({name} in [policy]): {advice}", "tool_limit"
        )


class Rates:
    """Calls in a moving window of time, for sessions and for users."""

    def __init__(self, policy: Policy) -> None:
        from limits import parse_many
        from limits.aio.storage import MemoryStorage
        from limits.aio.strategies import MovingWindowRateLimiter

        self._storage = MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._storage)
        self._session, self._user = (
            parse_many(text) if text else []
            for text in (policy.rate_per_session, policy.rate_per_user)
        )

    async def hit(self, session: str, user: str) -> None:
        """Count one call.

        Raises:
            ToolFailed: a rate is exceeded; it says when there is room again.
        """
        await self._hit("session", session, self._session)
        await self._hit("user", user, self._user)

    async def forget(self, session: str) -> None:
        """Forget the calls of a session."""
        for item in self._session:
            await self._limiter.clear(item, "session", session)

    async def _hit(self, kind: str, name: str, items: "Sequence[RateLimitItem]") -> None:
        for item in items:
            if not await self._limiter.hit(item, kind, name):
                window = await self._limiter.get_window_stats(item, kind, name)
                seconds = max(1, math.ceil(window.reset_time - time.time()))
                raise ToolFailed(
                    f"too many calls: {rate(item)} are allowed (rate_per_{kind} in [policy]); "
                    f"there is room again in {seconds} s, which time.sleep({seconds}) waits for",
                    "tool_limit",
                )
