"""The parts of the shared gateway, as a replica uses them (divingbell.gateway.shared)."""

from divingbell.gateway.policy.approvals import Kind, Remembered
from divingbell.gateway.policy.meter import Budgets
from divingbell.gateway.policy.pins import SharedPins
from divingbell.gateway.upstream.fleet import Listener
from divingbell.journal.totals import Counted
from divingbell.scale.gateway.accounts import form_of
from divingbell.scale.gateway.asking import asked
from divingbell.scale.gateway.common_labels import RemoteLabels
from divingbell.scale.gateway.failures import checked
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.remote_upstream import RemoteUpstream
from divingbell.scale.gateway.shared_pins import RemotePins
from divingbell.scale.gateway.shared_totals import RemoteTotals
from divingbell.scale.line import Line
from divingbell.session.intake import field_of
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Server

MOST_TOLD = 10_000
"""Sessions whose calls are known here; then all are forgotten, and asked for anew."""


class SharedGateway:
    """The gateway that a replica shares with others, by its link."""

    def __init__(self, link: GatewayLink, policy: Policy) -> None:
        self._link = link
        self._labels = RemoteLabels(policy.flow, link)
        self.labels = self._labels.labels
        self.budgets: Budgets = RemoteBudgets(link)
        self.remembered: Remembered = RemoteAnswers(link)
        self.pins: SharedPins = RemotePins(link)
        self._totals = RemoteTotals(link)

    async def start(self) -> None:
        """Take in what all others know, now and whenever the line is laid anew.

        Raises:
            DivingbellError: the gateway went away.
        """
        self._link.on_laid = self._labels.copied
        await self._labels.copied(self._link.laid())

    async def stop(self) -> None:
        """Have the last ledgers taken."""
        await self._totals.close()

    def count(self, counted: Counted, user: str) -> None:
        """Have a ledger, or what else is counted, added to the totals; returns at once."""
        self._totals.count(counted, user)

    def upstream(
        self,
        server: Server,
        on_tools: Listener,
        on_changed: Listener,
        on_state: Listener,
        session: str | None,
    ) -> RemoteUpstream:
        return RemoteUpstream(
            server,
            self._link,
            on_tools=on_tools,
            on_changed=on_changed,
            on_state=on_state,
            session=session,
        )


class _Ahead:
    """Calls of a cell that are counted already, and may be made without asking."""

    def __init__(self, line: Line, user: str, cell: int, left: int) -> None:
        self.line = line
        self.user, self.cell, self.left = user, cell, left

    def take(self, line: Line | None, user: str, cell: int) -> bool:
        """Make one of them, if there is one for this."""
        if self.left and (self.line, self.user, self.cell) == (line, user, cell):
            self.left -= 1
            return True
        return False


class RemoteBudgets:
    """The budgets and rates that all replicas count against
    (divingbell.gateway.policy.meter.Budgets).

    Where there is plenty left, some calls of a cell are counted ahead; those that it does not make
    are given back when it ends.
    """

    def __init__(self, link: GatewayLink) -> None:
        self._link = link
        self._used: dict[str, int] = {}
        self._ahead: dict[str, _Ahead] = {}

    async def reserve(self, session: str, user: str, cell: int = 0) -> None:
        """Count one call, or refuse it.

        Raises:
            ToolFailed: a budget is used up, a rate is exceeded, or the gateway is away.
        """
        ahead = self._ahead.get(session)
        if ahead is not None and ahead.take(self._link.current, user, cell):
            return
        self.end_run(session)
        request = {"op": "reserve", "key": session, "user": user, "cell": cell}
        message = await asked(self._link, request)
        if len(self._used) >= MOST_TOLD:
            self._used.clear()
        self._used[session] = field_of(message.header, "used", int, 0)
        checked(message)
        given, line = field_of(message.header, "ahead", int, 0), self._link.current
        if given > 0 and line is not None:
            self.end_run(session)  # of calls at once several have asked
            self._ahead[session] = _Ahead(line, user, cell, given)

    def used(self, session: str) -> int:
        """Return how many calls a session has made, as it was told last."""
        ahead = self._ahead.get(session)
        return self._used.get(session, 0) - (0 if ahead is None else ahead.left)

    def end_run(self, session: str) -> None:
        """Give back what was counted ahead and not made."""
        ahead = self._ahead.pop(session, None)
        if ahead is not None and ahead.left and ahead.line is self._link.current:
            self._used[session] = self._used.get(session, 0) - ahead.left
            ahead.line.tell({"op": "unused", "key": session, "count": ahead.left})

    async def forget(self, session: str) -> None:
        """Let go of a session: it has ended, or this replica has it no more."""
        self.end_run(session)
        self._used.pop(session, None)
        if (line := self._link.current) is not None:  # one that has gone has let go of all
            line.tell({"op": "forget", "key": session})


class RemoteAnswers:
    """The answers that hold for a session at all replicas
    (divingbell.gateway.policy.approvals.Remembered)."""

    def __init__(self, link: GatewayLink) -> None:
        self._link = link

    async def holds(self, kind: Kind) -> bool:
        header, body = form_of(kind)
        message = checked(await asked(self._link, {"op": "holds", **header}, body))
        return message.header.get("holds") is True

    async def take(self, kind: Kind) -> None:
        header, body = form_of(kind)
        checked(await asked(self._link, {"op": "remember", **header}, body))
