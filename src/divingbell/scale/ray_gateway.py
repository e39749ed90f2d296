"""The actor that has the gateway of all replicas of a service, and how replicas find it.

It is on the head, where the settings file is read, and is told where that is and nothing else. Its
name is made anew for each `serve run`, so a service that is set up otherwise has another one.
"""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from divingbell import logs
from divingbell.errors import ConfigError, SandboxUnavailable
from divingbell.scale import certificates, ray_access, ray_actors
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.ray_actors import CALLS_AT_ONCE, NAMESPACE, ON_THE_HEAD, answer

log = logs.logger("divingbell")

FIND_TIMEOUT = 60.0
"""Seconds for the actor to say where it is: Ray may have to start a process, and that loads us."""
LEFT_ALONE = 60.0
"""Seconds without any replica after which it ends."""


def new_name() -> str:
    """Return the name of the actor of a service that is set up now."""
    return f"gateway-{secrets.token_hex(8)}"


class GatewayActor:
    """The actor that has the gateway; it ends when no replica has been there for a while."""

    def __init__(
        self, name: str, config: str, theirs: Mapping[str, str], left_alone: float
    ) -> None:
        self._name, self._config, self._theirs = name, config, theirs
        self._left_alone = left_alone
        self._address: NodeAddress | None = None
        self._beginning = asyncio.Lock()
        self._leaving: asyncio.Task[None] | None = None

    async def address(self) -> tuple[NodeAddress, str]:
        """Return the way to the gateway, and the machine's address as Ray knows it.

        Raises:
            DivingbellError: it can't start; the message says why.
        """
        async with self._beginning:
            if self._address is None:
                try:
                    await self._begin()
                except BaseException:
                    self._leaving = self._leaving or asyncio.create_task(self._give_up())
                    raise
        assert self._address is not None
        return self._address, ray.util.get_node_ip_address()

    async def _begin(self) -> None:
        from divingbell.scale.gateway.host import GatewayHost
        from divingbell.scale.gateway.told_settings import LoadedSettings

        ray_actors.check_versions(self._theirs, ray_actors.versions())
        loaded = await asyncio.to_thread(LoadedSettings.of, self._config)
        insecure = loaded.settings.ray_insecure
        # Before the secret is handed out: of a cluster that lets anybody in, anybody would get it.
        await asyncio.to_thread(ray_access.connect, "auto", insecure=insecure)
        contexts = certificates.contexts()
        host = ray.util.get_node_ip_address() if contexts else "127.0.0.1"
        tls = contexts.server if contexts else None
        gateway = GatewayHost(loaded, self._name, host=host, tls=tls, left_alone=self._left_alone)
        self._address = await gateway.start()
        self._leaving = asyncio.create_task(self._leave(gateway))

    async def _leave(self, gateway: Any) -> None:
        await gateway.alone.wait()
        log.info("no replica is there any more: the gateway %s ends", self._name)
        await gateway.stop()
        await self._end()

    async def _give_up(self) -> None:
        """End where nothing could be started, unless somebody sees to it in time."""
        await asyncio.sleep(self._left_alone)
        if self._address is None:
            await self._end()

    async def _end(self) -> None:
        me = await asyncio.to_thread(ray.get_actor, self._name, NAMESPACE)
        ray.kill(me)


async def link_to(name: str, config: str, left_alone: float = LEFT_ALONE) -> GatewayLink:
    """Return the link of this replica to its gateway, which is started where there is none.

    That ends once there was no replica for so many seconds.

    Raises:
        ConfigError: it can't be used as it is set up.
        LineLost, SandboxUnavailable: it can't be reached.
    """

    async def find() -> NodeAddress:
        try:
            async with asyncio.timeout(FIND_TIMEOUT):
                actor = await asyncio.to_thread(_actor, name, config, left_alone)
                address, machine = await answer(actor.address.remote())
        except TimeoutError:
            raise SandboxUnavailable(
                "the actor of the gateway does not answer: `ray status` says how the cluster is"
            ) from None
        except RayError as error:
            raise SandboxUnavailable(
                f"the actor of the gateway failed: {ray_actors.why(error)}"
            ) from None
        found: NodeAddress = address
        if found.host == "127.0.0.1" and machine != ray.util.get_node_ip_address():
            raise ConfigError(
                f"the gateway is on another machine ({machine}), and the line to it would not be "
                "encrypted: set RAY_USE_TLS=1 with Ray's certificates on all machines (see "
                "docs/scale.md), and start Ray again"
            )
        return found

    contexts = certificates.contexts()
    link = GatewayLink(find, contexts.client if contexts else None)
    await link.start()
    return link


def _actor(name: str, config: str, left_alone: float) -> Any:
    """Return the actor, made where there is none. Blocks."""
    return (
        ray.remote(GatewayActor)
        .options(
            name=name,
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            resources=ON_THE_HEAD,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=CALLS_AT_ONCE,
        )
        .remote(name, config, ray_actors.versions(), left_alone)
    )
