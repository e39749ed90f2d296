"""What several gateways have in common, where one process keeps it for all of them."""

from typing import TYPE_CHECKING, Protocol

from divingbell.gateway.policy.approvals import Remembered
from divingbell.gateway.policy.labels import Labels
from divingbell.gateway.policy.meter import Budgets
from divingbell.gateway.policy.pins import SharedPins

if TYPE_CHECKING:
    from divingbell.gateway.upstream.base import UpstreamConnection
    from divingbell.gateway.upstream.fleet import Listener
    from divingbell.journal.totals import Counted
    from divingbell.settings.servers import Server


class SharedParts(Protocol):
    """The parts of a gateway that are kept elsewhere, once for all gateways of a service."""

    budgets: Budgets
    remembered: Remembered
    labels: Labels
    pins: SharedPins

    def upstream(
        self,
        server: "Server",
        on_tools: "Listener",
        on_changed: "Listener",
        on_state: "Listener",
        session: str | None,
    ) -> "UpstreamConnection":
        """Return the connection to a server (divingbell.gateway.upstream.fleet.MakeUpstream)."""

    def count(self, counted: "Counted", user: str) -> None:
        """Have a ledger, or what else is counted, added to the totals; returns at once."""
