"""A node: over TLS, with other versions, given up and asked, and what it does not have."""

import asyncio
import contextlib
import os
import re
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme

from divingbell import ConfigError
from divingbell.scale import certificates, greeting
from divingbell.scale.cluster import Held, NodeAddress
from divingbell.scale.line import Line, LineLost
from divingbell.scale.node import Node
from divingbell.settings.config import Settings
from tests.gateway.galley import ENTRY, galley
from tests.scale import nodes
from tests.waiting import until

# TLS

EVERYWHERE = "0.0.0.0"
"""An address of this machine that is not loopback by name: lines to it need TLS."""


def _files(folder: Path, authority: trustme.CA, host: str = EVERYWHERE) -> dict[str, str]:
    """Return the settings of a machine that shows a certificate for a host."""
    shown = authority.issue_cert(host)
    contents = (shown.cert_chain_pems[0], shown.private_key_pem, authority.cert_pem)
    told = {"RAY_USE_TLS": "1"}
    folder.mkdir()
    for name, content in zip(certificates.NAMES, contents, strict=True):
        content.write_to_path(folder / name)
        told[name] = str(folder / name)
    return told


def _client(told: dict[str, str]) -> ssl.SSLContext:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        found = certificates.contexts()
    assert found is not None
    return found.client


class _OverTLS(nodes.FixedCluster):
    def __init__(self, address: NodeAddress, tls: ssl.SSLContext | None) -> None:
        super().__init__([address])
        self.tls = tls


async def test_beyond_loopback_cells_run_over_tls_and_only_for_fronts_of_the_authority(
    tmp_path: Path,
) -> None:
    ours, others = trustme.CA(), trustme.CA()
    told = _files(tmp_path / "ours", ours)
    async with nodes.running("far", host=EVERYWHERE, DIVINGBELL_PRELOAD="", **told) as [node]:
        assert node.address.host == EVERYWHERE
        async with (
            nodes.front(cluster=_OverTLS(node.address, _client(told))) as bell,
            bell.session() as session,
        ):
            assert (await session.run("6 * 7")).value == 42
            transport: Any = session._handle._line._transport  # type: ignore[attr-defined]
            assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
            connection: socket.socket = transport.get_extra_info("socket")
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

        with pytest.raises(ConfigError, match="in the clear"):
            await _laid(node.address, None)
        # Who trusts the node, but shows a certificate of others, or none.
        stranger = _client(_files(tmp_path / "others", others))
        ours.configure_trust(stranger)
        nameless = ssl.create_default_context()
        ours.configure_trust(nameless)
        for context in (stranger, nameless):
            with pytest.raises(LineLost):
                await _laid(node.address, context)
        # Who shows a right one, and does not know the authority of the node, or its name.
        with pytest.raises(LineLost, match="certificate verify failed"):
            await _laid(node.address, _trusting(told, others))
        with pytest.raises(LineLost, match="certificate"):
            await _laid(
                NodeAddress("far", socket.gethostname(), node.address.port, node.address.secret),
                _client(told),
            )
        # In the clear, past its own check: the node hears nothing of it.
        reader, writer = await asyncio.open_connection(EVERYWHERE, node.address.port)
        writer.write(greeting.MAGIC + bytes(greeting.NONCE))
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < greeting.NONCE
        writer.close()


def _trusting(told: dict[str, str], authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(*(told[name] for name in certificates.NAMES[:2]))
    authority.configure_trust(context)
    return context


async def _laid(address: NodeAddress, tls: ssl.SSLContext | None) -> Line:
    line = Line("the node", opens_odd=True)
    await greeting.call(address, line, {}, tls)
    return line


def test_certificates_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    assert certificates.contexts() is None
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with pytest.raises(ConfigError, match="RAY_TLS_SERVER_KEY"):
        certificates.contexts()
    for name in certificates.NAMES:
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="can't be used"):
        certificates.contexts()


async def test_small_frames_do_not_wait_on_either_side() -> None:
    sockets: list[socket.socket] = []

    class Callee(greeting.Callee):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            sockets.append(transport.get_extra_info("socket"))

    secret = secrets.token_hex(32)
    listening = socket.socket()  # asyncio itself does it only for those made with IPPROTO_TCP
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(
        lambda: Callee(secret, set(), lambda: Line("a front", opens_odd=False)), sock=listening
    )
    async with server:
        port = server.sockets[0].getsockname()[1]
        line = Line("the node", opens_odd=True)
        laying = asyncio.create_task(
            greeting.call(NodeAddress("n", "127.0.0.1", port, secret), line, {})
        )
        await until(lambda: sockets and line._transport, "the line is laid")
        assert line._transport is not None
        sockets.append(line._transport.get_extra_info("socket"))
        for each in sockets:
            assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        line.lose("the test has ended")
        with pytest.raises(LineLost):
            await laying


# Versions


async def test_a_front_of_another_version_is_told_both(
    two_nodes: list[nodes.RunningNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = greeting.versions()
    monkeypatch.setattr(
        greeting, "versions", lambda: {**ours, "divingbell": "0.0.1", "python": "3.9"}
    )
    async with nodes.front(two_nodes[0].address) as bell:
        words = (
            f"the node north refuses this front: it has Divingbell 0.0.1 and not "
            f"{ours['divingbell']} and Python 3.9 and not {ours['python']}: install the same on "
            "both"
        )
        with pytest.raises(ConfigError, match=re.escape(words)):
            await bell.open()


# A directory


class SmallDirectory:
    """Knows which sessions a node may serve (divingbell.scale.cluster.Directory)."""

    def __init__(self) -> None:
        self.elsewhere: set[str] = set()
        self.asked: list[Sequence[Held]] = []
        self.ended: list[tuple[str, str, int]] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def still_mine(self, node: str, held: Sequence[Held]) -> Sequence[Held]:
        self.asked.append(held)
        await self.answers.wait()
        return [each for each in held if each.id not in self.elsewhere]

    async def gone(self, user: str, id: str, number: int) -> None:
        self.ended.append((user, id, number))


@pytest.fixture
async def asking() -> AsyncIterator[tuple[Node, SmallDirectory, nodes.FixedCluster]]:
    directory = SmallDirectory()
    node = Node(Settings(pool=0, preload=()), "here", directory=directory)
    address = await node.start()
    try:
        yield node, directory, nodes.FixedCluster([address])
    finally:
        directory.answers.set()
        await node.stop()


async def test_after_a_broken_line_a_node_asks_what_is_its_own_before_it_serves(
    asking: tuple[Node, SmallDirectory, nodes.FixedCluster],
) -> None:
    node, directory, cluster = asking
    async with nodes.front(cluster=cluster) as bell:
        kept, moved = await bell.open("kept"), await bell.open("moved")
        for each in (kept, moved):
            await each.run("x = 1")
        assert not directory.asked  # nobody could have given it up
        directory.elsewhere.add("moved")
        directory.answers.clear()
        kept._handle._line._transport.abort()  # type: ignore[attr-defined]
        running = asyncio.create_task(kept.run("x = x + 1\nx"))
        await until(lambda: directory.asked, "it asks")
        assert {held.id for held in directory.asked[0]} == {"kept", "moved"}
        assert not running.done() and all(
            held.session.cells == 1 for held in node.sessions.values()
        )
        directory.answers.set()
        assert (await running).value == 2
        assert [each.held.id for each in node.sessions.values()] == ["kept"]
        assert len(directory.asked) == 1 and directory.ended[0][1] == "moved"
        after = await moved.run("'x' in globals()")
        assert (after.value, after.state) == (False, "fresh")


async def test_a_node_that_has_hung_asks_first_and_one_that_no_directory_answers_serves_nothing(
    asking: tuple[Node, SmallDirectory, nodes.FixedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, directory, cluster = asking
    async with nodes.front(cluster=cluster) as bell, bell.session("one") as session:
        await session.run("x = 1")
        failures = iter((OSError("gone"), RuntimeError("not there yet")))
        answer = directory.still_mine

        async def failing(name: str, held: Sequence[Held]) -> Sequence[Held]:
            if (failure := next(failures, None)) is not None:
                raise failure
            return await answer(name, held)

        monkeypatch.setattr("divingbell.scale.node.ASK_AGAIN", 0.05)
        directory.still_mine = failing  # type: ignore[method-assign]
        node._ticked -= 60  # as if this process had been stopped for a minute
        assert (await session.run("x")).value == 1
        assert next(failures, None) is None and len(directory.asked) == 1


# What a node does not have


async def test_nothing_of_a_server_and_no_token_of_ray_is_in_a_node_or_its_sessions() -> None:
    secret, token = secrets.token_hex(24), secrets.token_hex(24)
    async with nodes.running("poor", DIVINGBELL_PRELOAD="", RAY_AUTH_TOKEN=token) as [node]:
        entry = {**ENTRY, "env": {"TOKEN": secret}}
        with nodes.used(nodes.FixedCluster([node.address])):
            async with galley(entry=entry, backend="ray") as (_, session):
                result = await session.run("servers.galley.add(1, 2)")
                assert result.value == 3, result.error
                held = b"".join(_memory_of(node.process.pid))
                assert secret.encode() not in held
                # It is the right memory: the token of Ray is there, in its environment.
                assert token.encode() in held
                read = (
                    "import glob\nfound = ''\n"
                    "for path in glob.glob('/proc/[0-9]*/environ'):\n"
                    "    try: found += open(path).read()\n    except OSError: pass\n"
                    "import os\nfound + str(dict(os.environ))"
                )
                told = (await session.run(read)).value
                assert token not in told and secret not in told and "PATH" in told
                assert node.address.secret not in told


def _memory_of(pid: int) -> Iterator[bytes]:
    """Yield what a process may write to, of its memory."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(number, 16) for number in span.split("-"))
            with contextlib.suppress(OSError, ValueError, OverflowError):  # it has gone meanwhile
                memory.seek(start)
                yield os.read(memory.fileno(), end - start)
