"""Placements: which node holds which session, and which node gets the next one.

Plain accounts without any cluster behind them. Whoever keeps them is the only one who does.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from divingbell.amounts import amount
from divingbell.errors import CapacityError, SandboxUnavailable
from divingbell.scale.cluster import Held

LEAST_MEMORY = 256 << 20
"""Bytes that must be free on a node that gets another session: three times a first pandas cell."""

SETTLING = 60.0
"""Seconds after which a session that was placed and that its node does not hold is forgotten: the
front has gone, or the session could not be opened. On the node it may wait for a place, too, for as
long as it may here."""

Key = tuple[str, str]
"""The name of a user, and the id of a session."""


@dataclass(slots=True)
class NodeAccount:
    """What is known of one node."""

    name: str
    places: int
    """Sessions that it may have."""
    memory: int = 0
    free_memory: int = 0
    """Bytes, as it said last."""
    is_draining: bool = False
    sessions: set[Key] = field(default_factory=set)

    @property
    def free_places(self) -> int:
        return self.places - len(self.sessions)

    @property
    def takes(self) -> bool:
        """Whether it can have one more session."""
        return not self.is_draining and self.free_places > 0 and self.free_memory >= LEAST_MEMORY

    @property
    def share(self) -> float:
        """The part of it that is free: of its places or of its memory, whichever is less."""
        return min(self.free_places / self.places, self.free_memory / max(self.memory, 1))


@dataclass(frozen=True, slots=True)
class _Placed:
    node: str
    number: int
    settles: float
    """When it is forgotten, if its node does not hold it by then."""


class Placements:
    """The nodes of a cluster, and where each session is."""

    def __init__(self, wanted: Callable[[int], None] = lambda nodes: None) -> None:
        """`wanted` is told how many nodes would be needed, while some wait for a place."""
        self.nodes: dict[str, NodeAccount] = {}
        self._placed: dict[Key, _Placed] = {}
        # By the clock, so that one who begins anew never gives a number out again.
        self.begun = self._number = time.time_ns()
        """No placing that was given out before has a number as high."""
        self._changed = asyncio.Condition()
        self._waiting = 0
        self._wanted = wanted

    async def place(
        self, user: str, id: str, seconds: float, most: int | None = None
    ) -> tuple[str, int]:
        """Return the node that holds a session or is to hold it, and the number of this placing.

        Waits so many seconds for a place. With `most` the user may have so many sessions.

        Raises:
            CapacityError: there is no place on any node, or the user has had theirs.
            SandboxUnavailable: there is no node.
        """
        key = user, id
        if most is not None and key not in self._placed and self.count_of(user) >= most:
            raise CapacityError(
                f"you have {most} sessions: end one first, with close_session or, over HTTP, with "
                "DELETE",
                of_user=True,
            )
        deadline = asyncio.get_running_loop().time() + seconds
        async with self._changed:
            while (node := self._node_for(key)) is None:
                await self._wait(deadline, seconds)
        self._number += 1
        self._put(key, _Placed(node, self._number, time.monotonic() + seconds + SETTLING))
        return node, self._number

    async def _wait(self, deadline: float, seconds: float) -> None:
        """Wait for a change, and have more nodes asked for meanwhile."""
        self._waiting += 1
        self._wanted(len(self.nodes) + 1)
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            raise self._no_place(seconds) from None
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._wanted(0)

    def _no_place(self, seconds: float) -> CapacityError | SandboxUnavailable:
        if not self.nodes:
            return SandboxUnavailable(
                "no node is up that runs sessions: `divingbell nodes` says which there are"
            )
        told = ", ".join(_room_of(node) for node in self.nodes.values())
        return CapacityError(
            f"no node had a place for {seconds:g} s ({told}): close a session, raise max_sessions, "
            "or add a machine"
        )

    def _node_for(self, key: Key) -> str | None:
        placed = self._placed.get(key)
        if placed is not None:
            return placed.node
        taking = [node for node in self.nodes.values() if node.takes]
        if not taking:
            return None
        return max(taking, key=lambda node: (node.share, node.free_memory)).name

    def _put(self, key: Key, placed: _Placed) -> None:
        self._placed[key] = placed
        self.nodes[placed.node].sessions.add(key)

    def ids_of(self, user: str) -> list[str]:
        """Return the ids of a user's sessions."""
        return [id for owner, id in self._placed if owner == user]

    def count_of(self, user: str) -> int:
        return sum(owner == user for owner, _ in self._placed)

    # What nodes say

    async def joined(self, name: str, report: Mapping[str, Any]) -> None:
        """Take a node in, with the sessions that it holds already."""
        self.nodes[name] = NodeAccount(name, report["places"])
        await self.reported(name, report)

    async def reported(self, name: str, report: Mapping[str, Any]) -> None:
        """Take note of how a node is doing."""
        node = self.nodes[name]
        node.memory, node.free_memory = report["memory"], report["free_memory"]
        node.is_draining = node.is_draining or report["draining"]
        held = {(each.user, each.id): each for each in report["held"]}
        now = time.monotonic()
        for key, each in held.items():
            known = self._placed.get(key)
            if known is None or (known.node != name and known.number < each.number):
                self._forget(key)
                self._number = max(self._number, each.number)
                self._put(key, _Placed(name, each.number, now))
        for key in node.sessions - held.keys():
            if self._placed[key].settles < now:
                self._forget(key)
        await self._tell()

    async def gone(self, user: str, id: str, number: int) -> None:
        """Forget a session that has ended, unless it was placed anew since."""
        placed = self._placed.get((user, id))
        if placed is not None and placed.number <= number:
            self._forget((user, id))
            await self._tell()

    async def given_up(self, name: str) -> None:
        """Forget a node and all that it held."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        for key in node.sessions:
            del self._placed[key]
        await self._tell()

    def still_of(self, name: str, held: Iterable[Held]) -> Sequence[Held]:
        """Return those of these sessions that this node has by the accounts."""
        found = []
        for each in held:
            placed = self._placed.get((each.user, each.id))
            if placed is not None and placed.node == name:
                found.append(each)
        return found

    def _forget(self, key: Key) -> None:
        placed = self._placed.pop(key, None)
        if placed is not None and placed.node in self.nodes:
            self.nodes[placed.node].sessions.discard(key)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _room_of(node: NodeAccount) -> str:
    if node.is_draining:
        return f"{node.name} is being drained"
    if node.free_places <= 0:
        return f"{node.name} has all of {amount(node.places, 'session')}"
    return f"{node.name} has {node.free_memory >> 20:,} MB of memory left"
