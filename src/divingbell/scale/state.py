"""The state of a session on a node, as fronts know it between two words of the node."""

from dataclasses import dataclass, field

from divingbell.models import Consumption
from divingbell.session.local import LocalSession


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a front shows of a session without asking its node."""

    cells: int = 0
    alive: bool = True
    copied_cell: int | None = None
    copy_refused: str | None = None
    last_used: float = 0.0
    """Seconds since 1970."""
    consumption: Consumption = field(default_factory=lambda: Consumption(0.0))


def state_of(session: LocalSession, last_used: float) -> SessionState:
    return SessionState(
        session.cells,
        session.alive,
        session.copied_cell,
        session.copy_refused,
        round(last_used, 3),
        session.consumption(),
    )
