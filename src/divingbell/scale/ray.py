"""Ray as the cluster: it places sessions, names nodes, watches them, and asks for more machines.

Two kinds of actors, named and detached, in the namespace `divingbell`: one for each Ray node that
offers the resource `divingbell`, which owns a Node (divingbell.scale.ray_node); and the directory,
which knows where each session is (divingbell.scale.ray_directory). What sessions do never passes
there: that is what lines are for (divingbell.scale.line).
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from divingbell import logs
from divingbell.errors import ConfigError, InvalidInput, SandboxUnavailable
from divingbell.scale.cluster import NodeAddress, Placement
from divingbell.settings.config import Settings

try:
    import ray

    from divingbell.scale import certificates, ray_access
    from divingbell.scale.ray_actors import (
        CALLS_AT_ONCE,
        DIRECTORY,
        NAMESPACE,
        ON_THE_HEAD,
        answer,
        check_versions,
        node_actor_name,
        versions,
    )
    from divingbell.scale.ray_directory import START_TIMEOUT, DirectoryActor, fingerprint
    from divingbell.scale.ray_node import node_settings
except ImportError as error:
    raise ConfigError(
        f"backend = \"ray\" needs Ray ({error}): run pip install 'divingbell[ray]'"
    ) from None

log = logs.logger("divingbell")

PATIENCE = 30.0
"""Seconds for the directory to answer, beside those that it may wait for a place: Ray starts one
that has died again, in two to five."""

T = TypeVar("T")


def cluster_of(settings: Settings) -> "RayCluster":
    """Return the Ray cluster that the settings name, not connected yet.

    Raises:
        ConfigError: Ray is not installed.
    """
    return RayCluster(settings)


class RayCluster:
    """The cluster as fronts see it (divingbell.scale.cluster.Cluster)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._plain = node_settings(settings)
        self._directory: Any = None
        self._addresses: dict[str, NodeAddress] = {}
        """By the name of the node; a node has another name each time it is started."""
        contexts = certificates.contexts()
        self.tls = contexts.client if contexts else None

    async def start(self) -> None:
        await asyncio.to_thread(self.connect)
        told = await self._asked(self._directory.hello.remote(self._plain))
        check_versions(told["versions"], versions())
        if told["settings"] != fingerprint(self._plain):
            log.warning(
                "the nodes were started with other settings (limits, packages, …), and keep them: "
                "to have yours, `divingbell nodes drain` each and start Ray anew on its machine"
            )
        await self._asked(self._directory.wait_for_a_node.remote(START_TIMEOUT), START_TIMEOUT)

    def connect(self) -> None:
        """Connect to Ray, and find the directory or make it. Blocks.

        Raises:
            ConfigError: the cluster lets anybody in, or not us.
            SandboxUnavailable: there is none.
        """
        self.connect_only()
        self._directory = (
            ray.remote(DirectoryActor)
            .options(
                name=DIRECTORY,
                namespace=NAMESPACE,
                get_if_exists=True,
                lifetime="detached",
                num_cpus=0,
                resources=ON_THE_HEAD,
                max_restarts=-1,
                max_task_retries=-1,
                max_concurrency=CALLS_AT_ONCE,
            )
            .remote(self._plain, versions())
        )

    def connect_only(self) -> None:
        """Connect to Ray, and start nothing there. Blocks. Raises what `connect` does."""
        ray_access.connect(self._settings.ray_address, insecure=self._settings.ray_insecure)

    async def stop(self) -> None:
        """Leave: the connection to Ray belongs to the process, and nodes go on."""

    async def nodes(self) -> list[NodeAddress]:
        found = await self._asked(self._directory.nodes.remote())
        return [await self._address(name, ray_id) for name, ray_id in found]

    async def place(self, user: str, id: str, most: int | None = None) -> Placement:
        seconds = self._settings.open_timeout
        asked = self._directory.place.remote(user, id, seconds, most)
        name, ray_id, number = await self._asked(asked, seconds)
        return Placement(await self._address(name, ray_id), number)

    async def held(self, user: str) -> list[str]:
        found: list[str] = await self._asked(self._directory.held.remote(user))
        return found

    async def lost(self, node: str) -> bool:
        is_gone: bool = await self._asked(self._directory.lost.remote(node))
        if is_gone:
            self._addresses.pop(node, None)
        return is_gone

    # For those who run it

    async def overview(self) -> list[dict[str, Any]]:
        """Return each node with what there is to say of it; none where nobody has used the cluster.

        Raises: as `start`.
        """
        directory = await self._found()
        if directory is None:
            return []
        found: list[dict[str, Any]] = await self._asked(directory.overview.remote())
        return found

    async def drain(self, name: str) -> None:
        """Give a node no more sessions, wait until it has none, and end it.

        Raises:
            InvalidInput: there is no such node.
        """
        directory = await self._found()
        if directory is None:
            raise InvalidInput(f"there is no node {name!r:.80}: nobody has used the cluster yet")
        await answer(directory.drain.remote(name))

    async def known_nodes(self) -> list[NodeAddress]:
        """Return the nodes that are up; none where nobody has used the cluster."""
        self._directory = await self._found()
        return [] if self._directory is None else await self.nodes()

    async def _found(self) -> Any:
        """Return the directory, None where nobody has made one."""
        if self._directory is None:
            await asyncio.to_thread(self.connect_only)
            try:
                return await asyncio.to_thread(ray.get_actor, DIRECTORY, NAMESPACE)
            except ValueError:
                return None
        return self._directory

    async def _address(self, name: str, ray_id: str) -> NodeAddress:
        if name not in self._addresses:
            actor = ray.get_actor(node_actor_name(ray_id), namespace=NAMESPACE)
            address, machine = await self._asked(actor.address.remote())
            if address.host == "127.0.0.1" and machine != ray.util.get_node_ip_address():
                raise ConfigError(
                    f"node {name} is on another machine ({machine}), and lines to it would not be "
                    "encrypted: set RAY_USE_TLS=1 with Ray's certificates on all machines (see "
                    "docs/scale.md), and start Ray again"
                )
            self._addresses[name] = address
        return self._addresses[name]

    async def _asked(self, reference: "Awaitable[T]", seconds: float = 0.0) -> T:
        try:
            async with asyncio.timeout(PATIENCE + seconds):
                return await answer(reference)
        except TimeoutError:
            raise SandboxUnavailable(
                "the directory of nodes does not answer: `ray status` says how the cluster is doing"
            ) from None
