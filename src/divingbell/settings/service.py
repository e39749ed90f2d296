"""The settings of the service: how many cells run at once over HTTP, and how it ends."""

from dataclasses import dataclass
from typing import Annotated

from divingbell.settings.markers import Described, at_least

Cells = Annotated[int, at_least(1)]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The `[service]` table."""

    cells: Cells = 64
    """Cells that run at once over the HTTP API, of all users."""
    cells_of_user: Cells = 8
    """The same of one user; more of them wait, and users take turns."""
    waiting: Cells = 512
    """Cells that wait, of all users; more are refused with 503."""
    waiting_of_user: Cells = 32
    """The same of one user; more are refused with 429."""
    drain_timeout: Annotated[float, Described("a number of seconds"), at_least(0)] = 30.0
    """Seconds that cells are given when the server is told to end; then they are cancelled."""
