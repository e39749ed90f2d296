"""The context of a call: who makes it, from where, and what goes back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from divingbell.journal.events import By
from divingbell.models import Event
from divingbell.principal import Principal

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

    from divingbell.gateway.spooled_tables import SpooledTable

Holder: TypeAlias = str | Principal
"""Whose labels a call has: the key of a session, or a client that calls directly."""


class Asker(Protocol):
    """The person behind a client, where there is one who can be asked."""

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask as MCP's elicitation does."""


@runtime_checkable
class ApprovalAsker(Asker, Protocol):
    """One who tells our own questions from those of servers, which a border may change."""

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask for an approval: the person sees what is really sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer that goes back inside: JSON, and what kind of value it is the form of."""

    body: bytes
    kind: str = "value"
    note: str = ""
    """What the reader of the cell's result should know of it, whatever the code makes of it."""
    table: "SpooledTable | None" = None
    """The result itself, where it is a file: for the session to take, and to close."""


def to_nobody(event: Event) -> None:
    """Tell nobody: between cells nobody listens, and clients are told another way."""


@dataclass(slots=True)
class CallContext:
    """Who makes a call: the principal, its session, and the run that the call belongs to."""

    principal: Principal
    session: str
    """The id of the session, as its owner knows it."""
    key: str
    """What tells this session from all others, of all users, also from a later one of its id."""
    by: By = "code"
    run: int = 0
    """The cell; 0 between cells."""
    asker: Asker | None = None
    tell: Callable[[Event], None] = to_nobody
    sent: bool = False
    """Whether the call has left for its server."""
    counted: bool = False
    """Whether the budgets have it already."""
    payer: tuple[str, int] | None = None
    """The key of the session and the cell whose budgets it counts against, where those are not its
    own: a helper's calls are its parent's."""

    @property
    def user(self) -> str:
        return self.principal.user

    @property
    def holder(self) -> Holder:
        """The one whose labels it has, and gets."""
        return self.key if self.by == "code" else self.principal

    @property
    def cell(self) -> int:
        """The cell that makes the call; 0 where none does."""
        return self.run if self.by == "code" else 0


def key_of(principal: Principal, session: str) -> str:
    """The part of a key that a session of the same id has again: `anna/one`. No other user has it,
    whatever their names are."""
    user = principal.user.replace("%", "%25").replace("/", "%2F")
    return f"{user}/{session}"
