"""The actor that owns a node, on each Ray node that offers the resource `divingbell`."""

import asyncio
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError
from ray.util.metrics import Gauge

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.models import Limits
from divingbell.scale import certificates, ray_actors
from divingbell.scale.cluster import Held, NodeAddress
from divingbell.settings.config import Settings

if TYPE_CHECKING:
    pass

log = logs.logger("divingbell")

AGAIN_AFTER = 1.0
"""Seconds before the directory is asked again, where it does not answer."""

_NODE_SETTINGS = (
    "backend_order", "backend_minimum", "platform", "packages", "preload", "workspace",
    "max_sessions", "open_timeout", "idle_timeout", "pool", "pool_most", "copy_after",
    "interrupt_grace", "cgroups", "uid_base", "uid_count", "node_backend", "node_port",
)  # fmt: skip
"""The settings that a node needs. Those that may hold a secret are none of them."""


def node_settings(settings: Settings) -> dict[str, Any]:
    """Return what nodes are told of the settings, as plain data."""
    found = {name: getattr(settings, name) for name in _NODE_SETTINGS}
    return found | {"limits": asdict(settings.limits), "mounts": dict(settings.mounts)}


class NodeActor:
    """The actor that owns a node; it lives as long as its process."""

    def __init__(self) -> None:
        # Here, and not in the head's process, which has no use for it.
        from divingbell.scale.node import Node

        self._make = Node
        self._node: Node | None = None
        self._address: NodeAddress | None = None
        self._beginning = asyncio.Lock()
        self._counts: _Counts | None = None

    async def begin(
        self, plain: Mapping[str, Any], theirs: Mapping[str, str], refuse_before: int
    ) -> tuple[str, dict[str, Any]]:
        """Start the node unless it runs; return its name and how it is doing.

        From now on no session is made for a placing of a lower number.

        Raises:
            DivingbellError: it can't start; the message says why.
        """
        async with self._beginning:
            if self._node is None:
                try:
                    await self._start(plain, theirs)
                except DivingbellError as error:
                    raise ray_actors.plain(error) from None
        assert self._address is not None
        return self._address.name, await self.report(refuse_before)

    async def _start(self, plain: Mapping[str, Any], theirs: Mapping[str, str]) -> None:
        ray_actors.check_versions(theirs, ray_actors.versions())
        settings = Settings(**{**plain, "limits": Limits(**plain["limits"])})
        contexts = certificates.contexts()
        host = ray.util.get_node_ip_address() if contexts else "127.0.0.1"
        name = f"{socket.gethostname()}-{secrets.token_hex(3)}"
        node = self._make(
            settings,
            name,
            directory=_AskedDirectory(),
            host=host,
            port=settings.node_port,
            tls=contexts.server if contexts else None,
        )
        self._address = await node.start()
        self._counts = _Counts(name)
        self._node = node

    async def address(self) -> tuple[NodeAddress, str]:
        """Return the way to the node, and the machine's address as Ray knows it."""
        assert self._address is not None
        return self._address, ray.util.get_node_ip_address()

    async def report(self, refuse_before: int = 0) -> dict[str, Any]:
        """Return how the node is doing."""
        assert self._node is not None and self._counts is not None
        report: dict[str, Any] = self._node.report(refuse_before)
        self._counts.set(report)
        return {**report, "machine": ray.util.get_node_ip_address(), "process": os.getpid()}

    async def ping(self) -> None:
        """Answer, if the loop on which the lines are lives."""

    async def drain(self) -> None:
        """Take no more sessions, and return once those that there are have ended."""
        if self._node is not None:
            await self._node.drain()

    async def stop(self) -> None:
        if self._node is not None:
            await self._node.stop()


class _Counts:
    """Counts of a node, as Ray gives them to a monitor."""

    def __init__(self, name: str) -> None:
        self._tags = {"node": name}
        self._gauges = {
            key: Gauge(f"divingbell_node_{key}", description=description, tag_keys=("node",))
            for key, description in (
                ("sessions", "Sessions that the node holds."),
                ("busy", "Sessions in which something runs."),
                ("free_places", "Sessions that the node could have besides."),
                ("free_memory", "Bytes of memory that are free on its machine."),
            )
        }

    def set(self, report: Mapping[str, Any]) -> None:
        found = {**report, "sessions": len(report["held"])}
        for key, gauge in self._gauges.items():
            gauge.set(float(found[key]), self._tags)


class _AskedDirectory:
    """The directory, for a node: it is asked for as long as it takes."""

    async def still_mine(self, node: str, held: Sequence[Held]) -> Sequence[Held]:
        while True:
            try:
                found: Sequence[Held] = await _directory().still_mine.remote(node, list(held))
                return found
            except (RayError, ValueError) as error:  # of a name that Ray does not know
                log.warning("the directory of nodes does not answer (%s); asking again", error)
                await asyncio.sleep(AGAIN_AFTER)

    async def gone(self, user: str, id: str, number: int) -> None:
        try:
            await _directory().gone.remote(user, id, number)
        except (RayError, ValueError) as error:  # it hears of it with the next report
            log.debug("the directory of nodes did not hear of an end: %s", error)


def _directory() -> Any:
    return ray.get_actor(ray_actors.DIRECTORY, namespace=ray_actors.NAMESPACE)
