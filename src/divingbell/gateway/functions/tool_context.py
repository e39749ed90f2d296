"""The context that a host function is told of its caller."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The caller of a host function. A parameter with this annotation gets it; code can't set it.

    All of it is what the host knows itself: nothing that code says has part in it.
    """

    tool: str
    """`host.NAME`, as it was called."""
    user: str | None
    """The user whose session it is; None where nobody was named."""
    session: str
    """The id of the session, as its owner knows it."""
    cell: int
    """The number of the cell; 0 between cells."""
