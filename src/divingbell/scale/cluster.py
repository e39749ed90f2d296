"""The cluster, as fronts and nodes see it: who places sessions, and knows which nodes there are.

A front asks a `Cluster` where a session is, or may be opened. A node asks a `Directory` which of
its sessions are still its own, once it may have been given up. Ray is behind both
(divingbell.scale.ray); here is what they say to each other, so that nothing else knows Ray.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """The way to a node."""

    name: str
    host: str
    port: int
    secret: str = field(repr=False)
    """The first thing that a front says on the line; who does not know it is not heard."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A node for the session of a user."""

    node: NodeAddress
    number: int
    """Counts the times when any session was placed, so that an end of the session which is told
    late does not undo a later placing of the same id."""


@dataclass(frozen=True, slots=True)
class Held:
    """A session that a node holds."""

    user: str
    id: str
    key: str
    """Its name: no other session has it, on whichever node."""
    number: int
    """The highest number of a placing with which it was opened or joined there."""


class Cluster(Protocol):
    """The side of fronts."""

    tls: ssl.SSLContext | None
    """For lines to nodes beyond loopback; None where there are none."""

    async def start(self) -> None:
        """Raises:
        ConfigError: it can't be used as it is set up; the message says what to do.
        SandboxUnavailable: it can't be reached.
        """

    async def stop(self) -> None: ...

    async def nodes(self) -> list[NodeAddress]:
        """Return the nodes that are there now."""

    async def place(self, user: str, id: str) -> Placement:
        """Return the node that holds this session, or else the one on which to open it.

        From then on every front is sent to that node for it, until the node says that it has
        ended, or is lost: so the node's own engine lets openers of one id in one after another.

        Raises:
            CapacityError: there is no place on any node, and none became free in time.
            SandboxUnavailable: there is no node.
        """

    async def held(self, user: str) -> list[str]:
        """Return the ids of the sessions that a user has, whichever front has opened them."""

    async def lost(self, node: str) -> bool:
        """Say that this front has lost a node: its line is broken and it can't be reached again.

        Returns:
            Whether it is given up, as it is for all fronts: its sessions may be opened elsewhere,
            because it has ended or will ask before it serves them again. False where it lives,
            and only this front can't reach it.
        """


class Directory(Protocol):
    """The side of nodes."""

    async def still_mine(self, node: str, held: Sequence[Held]) -> Sequence[Held]:
        """Return those of its sessions that a node may go on serving; it closes the others.

        A node asks when it may have been given up: it has hung, or a line broke that no front had
        ended. Nothing is answered on any line meanwhile.
        """

    async def gone(self, user: str, id: str, number: int) -> None:
        """Take note that a session has ended. It counts only if no later placing of that id was
        given out than the one of this number."""
