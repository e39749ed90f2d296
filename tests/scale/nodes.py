"""Nodes as real processes (`divingbell node`), and a cluster of a fixed list of them."""

import asyncio
import contextlib
import hashlib
import secrets
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest import mock

from divingbell import Divingbell
from divingbell.errors import SandboxUnavailable
from divingbell.scale import clusters
from divingbell.scale.cluster import NodeAddress, Placement
from tests.surfaces.cli.command import COMMAND, PATIENCE, environment

LEAN = {
    "DIVINGBELL_POOL": "1",
    "DIVINGBELL_COPY_AFTER": "0.05",
    "DIVINGBELL_INTERRUPT_GRACE": "0.5",
}
"""As the Divingbell of all other tests."""


class RunningNode:
    """A node in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, address: NodeAddress) -> None:
        self.process = process
        self.address = address

    @property
    def name(self) -> str:
        return self.address.name

    def kill(self) -> None:
        self.process.kill()

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def stop(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.wake()
                self.process.terminate()
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()


async def start(name: str, *, host: str = "127.0.0.1", **settings: str) -> RunningNode:
    """Start a node; return it once it has said where it is."""
    secret = secrets.token_hex(32)
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *("node", "--name", name, "--host", host),
        env=environment(DIVINGBELL_NODE_SECRET=secret, **{**LEAN, **settings}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = (await process.stdout.readline()).decode()
    assert line, f"the node {name} did not start"
    host, _, port = line.split()[1].rpartition(":")
    return RunningNode(process, NodeAddress(name, host, int(port), secret))


@contextlib.asynccontextmanager
async def running(
    *names: str, host: str = "127.0.0.1", **settings: str
) -> AsyncIterator[list[RunningNode]]:
    """Nodes of these names, until the block ends."""
    nodes = await asyncio.gather(*(start(name, host=host, **settings) for name in names))
    try:
        yield list(nodes)
    finally:
        await asyncio.gather(*(node.stop() for node in nodes))


class FixedCluster:
    """A list of nodes; which one holds a session follows from its name, so fronts agree."""

    tls: ssl.SSLContext | None = None

    def __init__(self, addresses: list[NodeAddress]) -> None:
        self.addresses = addresses
        self.given_up: set[str] = set()
        self.placed = 0

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def nodes(self) -> list[NodeAddress]:
        return [each for each in self.addresses if each.name not in self.given_up]

    async def place(self, user: str, id: str) -> Placement:
        def rank(node: NodeAddress) -> bytes:
            return hashlib.sha256(f"{node.name}/{user}/{id}".encode()).digest()

        nodes = await self.nodes()
        if not nodes:
            raise SandboxUnavailable("there is no node")
        self.placed += 1
        return Placement(max(nodes, key=rank), self.placed)

    async def lost(self, node: str) -> bool:
        self.given_up.add(node)
        return True


@contextlib.contextmanager
def used(cluster: Any) -> Iterator[None]:
    """Have `backend = "ray"` mean this cluster."""
    with mock.patch.object(clusters, "cluster_of", lambda settings: cluster):
        yield


@contextlib.asynccontextmanager
async def front(
    *addresses: NodeAddress, cluster: FixedCluster | None = None, **settings: Any
) -> AsyncIterator[Divingbell]:
    """A Divingbell whose sessions are on these nodes."""
    with used(cluster or FixedCluster(list(addresses))):
        async with Divingbell("ray", interrupt_grace=0.5, **settings) as bell:
            yield bell


def node_of(session: Any) -> str:
    """The name of the node that holds a session."""
    return str(session._handle.node)


def told(address: NodeAddress) -> str:
    """An address as a program in another process is told of it (tests/scale/program.py)."""
    return f"{address.name}|{address.host}|{address.port}|{address.secret}"
