"""The CPU account of a session: what its processes use is charged to its user."""

from typing import Protocol

from divingbell.models import Consumption
from divingbell.session.user_rates import UserRates


class Consumer(Protocol):
    """A sandbox, or who knows what one uses."""

    def consumption(self) -> Consumption: ...


class CpuAccount:
    """Charges a user with the processor time of one session, as the kernel counts it for all of its
    processes: in cells, in commands, and between them."""

    def __init__(self, rates: UserRates, user: str, sandbox: Consumer) -> None:
        self._rates = rates
        self._user = user
        self.begin(sandbox)

    def begin(self, sandbox: Consumer) -> None:
        """Count from now on what this sandbox uses. To make it was the host's own business."""
        self._sandbox = sandbox
        self._charged = self._used()

    def charge(self) -> float:
        """Charge what was used since the last time; return those seconds."""
        if not self._rates.counts_cpu:
            return 0.0
        # Without control groups the time of a process that has ended is gone: never less than 0.
        used, self._charged = self._charged, self._used()
        seconds = max(0.0, self._charged - used)
        if seconds:
            self._rates.use_cpu(self._user, seconds)
        return seconds

    def _used(self) -> float:
        return self._sandbox.consumption().cpu_seconds if self._rates.counts_cpu else 0.0
