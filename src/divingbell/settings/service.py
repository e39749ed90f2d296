"""The settings of the service: how many cells run at once over HTTP, and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from divingbell.errors import ConfigError
from divingbell.models import Limits
from divingbell.settings import tables
from divingbell.settings.markers import Described, ReadBy, at_least


def _most(value: Any, place: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(place.told("limits must be a table of limits"))
    return tables.values(Limits, value, place)


Cells = Annotated[int, at_least(1)]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The `[service]` table."""

    cells: Cells = 64
    """Cells that run at once, of all users: over the API, MCP, Jupyter and in conversations."""
    cells_of_user: Cells = 8
    """The same of one user; more of them wait, and users take turns."""
    waiting: Cells = 512
    """Cells that wait, of all users; more are refused with 503."""
    waiting_of_user: Cells = 32
    """The same of one user; more are refused with 429."""
    drain_timeout: Annotated[float, Described("a number of seconds"), at_least(0)] = 30.0
    """Seconds that cells are given when the server is told to end; then they are cancelled."""
    limits: Annotated[Mapping[str, Any], Described("a table of limits"), ReadBy(_most)] = field(
        default_factory=dict
    )
    """The most that clients may ask for, by name as in `[limits]`; what is left out is as there."""

    def most(self, usual: Limits) -> Limits:
        """Return the limits that no client may exceed. A cell may have all the time of its ceiling:
        that is what bounds it."""
        found = replace(usual, **self.limits)
        return replace(found, timeout=max(found.timeout, found.ceiling))
