"""The directory of nodes, as an actor of Ray: where sessions are, and a node for each Ray node.

What it knows is made again from what the nodes hold, when Ray has started it anew.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from divingbell import logs
from divingbell.errors import InvalidInput, SandboxUnavailable
from divingbell.scale.cluster import Held
from divingbell.scale.placements import Placements
from divingbell.scale.ray_actors import (
    CALLS_AT_ONCE,
    NAMESPACE,
    RESOURCE,
    node_actor_name,
    why,
)
from divingbell.scale.ray_node import NodeActor

log = logs.logger("divingbell")

LOOK_EVERY = 1.0
"""Seconds between two looks at the Ray nodes, and at how ours are doing."""
ANSWER_TIMEOUT = 2.0
"""Seconds in which a node says how it is doing."""
CONFIRM_TIMEOUT = 1.5
"""Seconds that a node has to answer when a front has lost it. Its line was silent for three, so it
has hung for longer than it may, and asks before it serves again."""
REBUILD_TIMEOUT = 5.0
START_TIMEOUT = 300.0
"""Seconds for a node to come up: it may have packages to install."""
AGAIN_AFTER = 2.0
"""Seconds before a node that could not start is tried again. Ray may take that long to know that
the one before it is dead, whose name it has."""
MEMORY_PART = 0.7
"""The part of the memory that Ray counts for a machine which a node reserves at most."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _RayNode:
    """A Ray node that offers our resource."""

    id: str
    amount: float
    memory: float


@dataclass(slots=True)
class _Up:
    """A node that is up, or was."""

    name: str
    actor: Any
    report: Mapping[str, Any]
    """What it said last of itself."""
    heard: float = 0.0
    """When it spoke last, by the loop's clock."""


class DirectoryActor:
    """The actor that knows where sessions are, and sees to it that each Ray node has its node."""

    def __init__(self, plain: Mapping[str, Any], theirs: Mapping[str, str]) -> None:
        self._plain, self._versions = plain, theirs
        self._placements = Placements(self._ask_for_nodes)
        self._up: dict[str, _Up] = {}
        """By the id of the Ray node."""
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, str] = {}
        """Why nodes could not start, by the id of the Ray node."""
        self._left_alone: set[str] = set()
        """Ray nodes whose node was drained."""
        self._began: asyncio.Task[None] | None = None
        self._wanted = 0
        """Nodes that Ray's autoscaler is to see to."""
        self._asking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # For fronts

    async def hello(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Return the versions and settings of the nodes. Where all failed or were drained, those of
        the front that asks are taken over: with the ones before there would never be a node."""
        await self._begin()
        if not self._up and (self._failed or self._left_alone) and plain != self._plain:
            self._plain = plain
            self._failed.clear()
        return {"versions": self._versions, "settings": fingerprint(self._plain)}

    async def wait_for_a_node(self, seconds: float) -> None:
        """Return once a node is up.

        Raises:
            SandboxUnavailable: none came up in time, or all that there are failed.
        """
        await self._begin()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not self._placements.nodes:
            machines = {node.id for node in await asyncio.to_thread(offering)}
            machines -= self._left_alone
            if not machines:
                raise SandboxUnavailable(
                    "no Ray node offers the resource divingbell: start Ray on each machine that "
                    "shall run sessions with ray start … --resources='{\"divingbell\": 1}'"
                )
            if machines <= self._failed.keys() or loop.time() > deadline:
                reasons = "; ".join(sorted(set(self._failed.values()))) or "it takes too long"
                raise SandboxUnavailable(f"no node could be started: {reasons}")
            await asyncio.sleep(0.1)

    async def place(
        self, user: str, id: str, seconds: float, most: int | None
    ) -> tuple[str, str, int]:
        """Return the name of a node, its Ray node, and the number of this placing."""
        await self._begin()
        node, number = await self._placements.place(user, id, seconds, most)
        return node, self._ray_id_of(node), number

    async def nodes(self) -> list[tuple[str, str]]:
        """Return the names of the nodes, and their Ray nodes."""
        await self._begin()
        return [(name, self._ray_id_of(name)) for name in self._placements.nodes]

    async def held(self, user: str) -> list[str]:
        await self._begin()
        return self._placements.ids_of(user)

    async def lost(self, name: str) -> bool:
        """Give a node up that a front has lost, unless it answers."""
        await self._begin()
        up = next((up for up in self._up.values() if up.name == name), None)
        if up is None or name not in self._placements.nodes:
            return True
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            await asyncio.wait_for(_awaited(up.actor.ping.remote()), CONFIRM_TIMEOUT)
        except TimeoutError:
            if up.heard > asked:
                return False  # it has asked what is still its own meanwhile
        except RayActorError:
            self._forget(name)
        else:
            return False
        log.warning("node %s is given up: a front has lost it, and it does not answer", name)
        await self._placements.given_up(name)
        return True

    # For nodes

    async def still_mine(self, node: str, held: Sequence[Held]) -> list[Held]:
        await self._begin()
        for up in self._up.values():
            if up.name == node:
                up.heard = asyncio.get_running_loop().time()
        return list(self._placements.still_of(node, held))

    async def gone(self, user: str, id: str, number: int) -> None:
        await self._placements.gone(user, id, number)

    # For those who run it

    async def overview(self) -> list[dict[str, Any]]:
        """Return each node with what there is to say of it, and Ray nodes that have none."""
        await self._begin()
        found: list[dict[str, Any]] = []
        for ray_id, up in self._up.items():
            account = self._placements.nodes.get(up.name)
            found.append(
                {
                    "name": up.name,
                    "ray_node": ray_id,
                    "state": _state_of(account),
                    "sessions": 0 if account is None else len(account.sessions),
                    "places": 0 if account is None else account.places,
                    "free_memory": 0 if account is None else account.free_memory,
                    **{key: up.report[key] for key in ("backend", "machine", "process")},
                    "reason": "",
                }
            )
        for ray_id, reason in self._failed.items():
            found.append({"name": "", "ray_node": ray_id, "state": "failed", "reason": reason})
        for ray_id in self._starting:
            found.append({"name": "", "ray_node": ray_id, "state": "starting", "reason": ""})
        return found

    async def drain(self, name: str) -> None:
        """Give a node no more sessions, wait until it has none, and end it.

        Raises:
            InvalidInput: there is no such node.
        """
        await self._begin()
        ray_id = self._ray_id_of(name)
        up = self._up[ray_id]
        self._placements.nodes[name].is_draining = True
        self._left_alone.add(ray_id)
        await up.actor.drain.remote()
        await up.actor.stop.remote()
        await self._placements.given_up(name)
        self._up.pop(ray_id, None)
        ray.kill(up.actor)

    # Inside

    async def _begin(self) -> None:
        if self._began is None:
            self._began = asyncio.create_task(self._rebuild())
        await asyncio.shield(self._began)

    async def _rebuild(self) -> None:
        """Learn what nodes that are up hold; from then on look after all of them."""
        found = await asyncio.to_thread(offering)
        there = await asyncio.to_thread(_actors_there)
        for node in found:
            if node_actor_name(node.id) in there:
                self._start(node)
        if self._starting:
            await asyncio.wait(self._starting.values(), timeout=REBUILD_TIMEOUT)
        self._spawn(self._look_on())

    async def _look_on(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:  # of a cluster that is being changed; it is looked again
                log.exception("the nodes could not be looked at")
            await asyncio.sleep(LOOK_EVERY)

    async def _look(self) -> None:
        machines = {node.id: node for node in await asyncio.to_thread(offering)}
        for ray_id in [*self._failed, *self._left_alone]:
            if ray_id not in machines:
                self._failed.pop(ray_id, None)
                self._left_alone.discard(ray_id)
        for ray_id, node in machines.items():
            if ray_id not in self._up.keys() | self._starting.keys() | self._left_alone:
                self._start(node)
        await asyncio.gather(*(self._hear(up) for up in list(self._up.values())))

    def _start(self, node: _RayNode) -> None:
        task = self._spawn(self._start_node(node))
        self._starting[node.id] = task
        task.add_done_callback(lambda _: self._starting.pop(node.id, None))

    async def _start_node(self, node: _RayNode) -> None:
        plain = self._plain
        actor = await asyncio.to_thread(_node_actor, node, plain)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                name, report = await actor.begin.remote(
                    plain, self._versions, self._placements.begun
                )
        except (RayError, TimeoutError) as error:
            if plain is self._plain:  # else others are tried next
                self._failed[node.id] = _reason(error)
            ray.kill(actor)
            await asyncio.sleep(AGAIN_AFTER)
            return
        self._failed.pop(node.id, None)
        self._up[node.id] = _Up(name, actor, report)
        await self._placements.joined(name, report)

    async def _hear(self, up: _Up) -> None:
        """Have a node say how it is doing."""
        try:
            report = await asyncio.wait_for(_awaited(up.actor.report.remote()), ANSWER_TIMEOUT)
        except RayActorError:
            self._forget(up.name)
            await self._placements.given_up(up.name)
        except (TimeoutError, RayError) as error:
            log.debug("node %s does not say how it is doing: %s", up.name, error)
        else:
            up.heard, up.report = asyncio.get_running_loop().time(), report
            if up.name in self._placements.nodes:
                await self._placements.reported(up.name, report)
            else:
                # It was given up: what it held is told to be gone, and it asks before it serves.
                await self._placements.joined(up.name, {**report, "held": []})

    def _forget(self, name: str) -> None:
        for ray_id in [ray_id for ray_id, up in self._up.items() if up.name == name]:
            del self._up[ray_id]

    def _ray_id_of(self, name: str) -> str:
        for ray_id, up in self._up.items():
            if up.name == name:
                return ray_id
        raise InvalidInput(f"there is no node {name!r:.80}: `divingbell nodes` lists them")

    def _ask_for_nodes(self, count: int) -> None:
        """Have Ray's autoscaler see to it that there are so many; 0: no more than are used."""
        self._wanted = count
        if self._asking is None or self._asking.done():
            self._asking = self._spawn(self._keep_asking())

    async def _keep_asking(self) -> None:
        """Ask for what is wanted, one after the other: the last word counts until the next."""
        from ray.autoscaler.sdk import request_resources

        asked = None
        while asked != self._wanted:
            asked = self._wanted
            try:
                await asyncio.to_thread(request_resources, bundles=[{RESOURCE: 1}] * asked)
            except (RayError, ConnectionError, RuntimeError) as error:
                log.warning("Ray's autoscaler could not be asked for a machine: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def fingerprint(plain: Mapping[str, Any]) -> str:
    """Return what tells two settings of nodes apart."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=list).encode()).hexdigest()


def _state_of(account: Any) -> str:
    if account is None:
        return "given up"
    if account.is_draining:
        return "draining"
    return "full" if not account.takes else "up"


async def _awaited(reference: "Awaitable[T]") -> T:
    return await reference


def _reason(error: BaseException) -> str:
    """Return why a node is not up."""
    if isinstance(error, TimeoutError):
        return (
            f"it was not up after {START_TIMEOUT:g} s; if `ray status` says that memory is "
            "missing, lower max_sessions or the limit `memory`"
        )
    return why(error)


# Blocking calls of Ray, for threads


def offering() -> list[_RayNode]:
    """Return the Ray nodes whose machines shall run sessions."""
    return [
        _RayNode(node["NodeID"], node["Resources"][RESOURCE], node["Resources"].get("memory", 0))
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get(RESOURCE)
    ]


def _actors_there() -> set[str]:
    named = ray.util.list_named_actors(all_namespaces=True)
    return {each["name"] for each in named if each["namespace"] == NAMESPACE}


def _node_actor(node: _RayNode, plain: Mapping[str, Any]) -> Any:
    """Return the actor of a Ray node, made where there is none."""
    wanted = plain["max_sessions"] * plain["limits"]["memory"]
    return (
        ray.remote(NodeActor)
        .options(
            name=node_actor_name(node.id),
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            resources={RESOURCE: node.amount},
            # Ray gives this to nobody else, and of workers that take too much it ends those last
            # that it can't start again.
            memory=int(min(wanted, node.memory * MEMORY_PART)),
            max_restarts=0,
            max_concurrency=CALLS_AT_ONCE,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        )
        .remote()
    )
