"""Shared gateways for tests: in this process, and reached over a real line."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from typing import Any

from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway.host import GatewayHost
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.remote_upstream import RemoteUpstream
from divingbell.scale.gateway.told_settings import LoadedSettings
from divingbell.settings.config import Settings
from divingbell.settings.servers import Server

PATIENCE = 30.0


class Hosts:
    """One gateway after the other, as when Ray starts one again that has died."""

    def __init__(self, loaded: LoadedSettings, **options: Any) -> None:
        self.loaded, self.options = loaded, options
        self.host: GatewayHost | None = None
        self.address: NodeAddress | None = None
        self.looked_for = 0

    async def start(self) -> GatewayHost:
        self.host = GatewayHost(self.loaded, "the gateway", **self.options)
        self.address = await self.host.start()
        return self.host

    async def stop(self) -> None:
        host, self.host, self.address = self.host, None, None
        if host is not None:
            await host.stop()

    async def find(self) -> NodeAddress:
        self.looked_for += 1
        if self.address is None:
            raise OSError("nobody is there")
        return self.address


@contextlib.asynccontextmanager
async def running(
    *servers: Server, settings: Settings | None = None, **options: Any
) -> AsyncIterator[Hosts]:
    """A gateway with these servers, until the block ends."""
    found = replace(settings or Settings(), servers=servers)
    hosts = Hosts(LoadedSettings(found, None), **options)
    await hosts.start()
    try:
        yield hosts
    finally:
        await hosts.stop()


@contextlib.asynccontextmanager
async def linked(hosts: Hosts) -> AsyncIterator[GatewayLink]:
    """The link of a replica."""
    link = GatewayLink(hosts.find)
    await link.start()
    try:
        yield link
    finally:
        await link.stop()


class Heard:
    """What a replica has heard of a server."""

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.states: list[str] = []
        self.changes: list[str] = []


@contextlib.asynccontextmanager
async def upstream(
    link: GatewayLink, server: Server, session: str | None = None
) -> AsyncIterator[tuple[RemoteUpstream, Heard]]:
    """A server as a replica has it, begun."""
    heard = Heard()
    on_state: Callable[[str], None] = heard.states.append
    found = RemoteUpstream(
        server,
        link,
        on_tools=lambda tools: heard.lists.append([tool.name for tool in tools]),
        on_changed=heard.changes.append,
        on_state=on_state,
        session=session,
    )
    found.start()
    try:
        yield found, heard
    finally:
        await found.stop()


@contextlib.asynccontextmanager
async def apart(config: str) -> AsyncIterator[NodeAddress]:
    """A gateway in a process of its own, with the servers of a settings file."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.scale.gateway.hosts", config),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = await process.stdout.readline()
        yield NodeAddress(**json.loads(line))
    finally:
        process.stdin.close()
        await process.wait()


async def _serve(config: str) -> None:
    host = GatewayHost(LoadedSettings.of(config), "the gateway")
    address = await host.start()
    print(json.dumps(asdict(address)), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever has started it closes that
    await host.stop()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
