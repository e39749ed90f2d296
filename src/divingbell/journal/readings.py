"""Readings: what is read off the sessions when a monitor asks, and told by no event."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Readings:
    """The state of all sessions at one time."""

    busy: int = 0
    """Sessions in which something runs."""
    idle: int = 0
    memory: int = 0
    """Bytes that all sessions hold."""
    pool: int = 0
    """Sessions that wait to be opened."""
    from_pool: int = 0
    """Sessions that were opened and had waited, since the start."""
    made: int = 0
    """Sessions that had to be made when they were opened, since the start."""
    copies: int = 0
    """Copies of interpreters that wait for an accident."""
    copies_made: int = 0
    masked: Mapping[str, int] = field(default_factory=dict)
    """Values that were hidden from models since the start, by their kinds."""
    unrecorded: int = 0
    """Cells and calls that were not made, as they could not be recorded."""
    queue: int = 0
    """Executions that wait for their turn."""
