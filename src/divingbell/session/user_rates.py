"""User rates: the executions and CPU seconds that a user has in a time, over all sessions."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from divingbell.amounts import rate
from divingbell.errors import RateExceeded
from divingbell.settings.policy import Policy
from divingbell.shares.buckets import Buckets

CHANGE = 0.05
"""CPU seconds that may be owed without a refusal: as many as a session uses that does nothing. Its
interpreter is copied after a cell, which takes 0.01; whoever has waited as long as was said shall
not be told to wait for that."""
_EXECUTIONS = (
    "not run: too many executions, {rate} are allowed (execution_rate_per_user in [policy]). "
    "Wait, and do more in each; again in {again} s"
)
_CPU = (
    "not run: your CPU seconds are used up, {rate} are allowed (cpu_rate_per_user in [policy]). "
    "Wait: whatever still runs uses up more; again in {again} s"
)


@dataclass(frozen=True, slots=True)
class _Rate:
    words: str
    """Such as `60 a minute`."""
    buckets: Buckets


_Wait = tuple[float, _Rate, str]
"""Seconds, the rate that asks for them, and the words for it."""


def _refuse(waits: list[_Wait]) -> None:
    """Raise RateExceeded for the longest wait, if there is any."""
    if not waits:
        return
    seconds, used, words = max(waits, key=lambda wait: wait[0])
    if seconds:
        again = max(1, math.ceil(seconds))
        raise RateExceeded(words.format(rate=used.words, again=again), seconds)


class UserRates:
    """What users have taken. One for a whole Divingbell, on one event loop: neither the end of a
    session nor another conversation gives anything back.

    An execution is counted when it begins. CPU seconds are counted as they are used, and who owes
    some begins nothing more. What runs goes on: it has limits of its own, and to end it would throw
    away what was paid for already. What has no limit is ended when a whole budget is owed; see
    `is_overdrawn`.
    """

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._executions = self._rates(policy.execution_rate_per_user)
        self._cpu = self._rates(policy.cpu_rate_per_user)

    def _rates(self, text: str) -> tuple[_Rate, ...]:
        if not text:
            return ()
        from limits import parse_many  # it takes a while to load, and few set a rate

        return tuple(
            _Rate(rate(item), Buckets(item.amount, item.get_expiry(), self._now))
            for item in parse_many(text)
        )

    def _now(self) -> float:
        return self.clock()

    @property
    def counts_cpu(self) -> bool:
        """Whether anybody wants to know of CPU seconds."""
        return bool(self._cpu)

    def check(self, user: str) -> None:
        """Refuse an execution that could not begin now; none is counted.

        Raises:
            RateExceeded: a rate is used up; it says when there is room again.
        """
        waits = [(each.buckets.wait(user, 1.0), each, _EXECUTIONS) for each in self._executions]
        _refuse(waits + self._waits_for_cpu(user))

    def check_cpu(self, user: str) -> None:
        """Refuse something that is no execution, to a user who owes CPU seconds.

        Raises:
            RateExceeded: some are owed; it says when there is room again.
        """
        _refuse(self._waits_for_cpu(user))

    def _waits_for_cpu(self, user: str) -> list["_Wait"]:
        owed = (each for each in self._cpu if each.buckets.wait(user, -CHANGE))
        return [(each.buckets.wait(user), each, _CPU) for each in owed]

    def admit(self, user: str) -> None:
        """Count an execution that begins now, or refuse it.

        Raises:
            RateExceeded: a rate is used up; it says when there is room again.
        """
        self.check(user)
        for each in self._executions:
            each.buckets.take(user, 1.0)

    def use_cpu(self, user: str, seconds: float) -> None:
        """Count CPU seconds that were used."""
        for each in self._cpu:
            each.buckets.take(user, seconds)

    def is_overdrawn(self, user: str) -> bool:
        """Return whether a user has used a whole budget of CPU seconds beyond the budget."""
        return any(each.buckets.is_overdrawn(user) for each in self._cpu)
