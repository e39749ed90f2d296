"""More than one machine: the line between fronts and nodes, and what a node knows."""

import asyncio
import os
import secrets
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from divingbell.models import Result
from divingbell.promises.check.rig import SAMPLE, CheckRig, checks, expect
from divingbell.scale import forms, greeting, line
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway.host import GatewayHost
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.scale.gateway.told_settings import LoadedSettings
from divingbell.scale.greeting import Callee
from divingbell.scale.line import Line, Message, Stream
from divingbell.scale.node import Node
from divingbell.settings.config import Settings
from divingbell.settings.servers import Server, read_entries
from divingbell.settings.tables import Place
from divingbell_inside import frames

PATIENCE = 10.0
MOST_SOCKETS = 50
DEPTH = 12
"""Objects in a row that are looked into for a secret."""


class _Listener:
    """A side of lines that listens on loopback, as a node does."""

    def __init__(self) -> None:
        self.secret = secrets.token_hex(32)
        self.strangers: set[Callee] = set()
        self.lines: list[Line] = []
        self.met = 0
        self.asked: list[tuple[Stream, Message]] = []

    def meet(self) -> Callee:
        self.met += 1
        return Callee(self.secret, self.strangers, self._make)

    def _make(self) -> Line:
        made = Line("a front", opens_odd=False)
        made.on_word = lambda at, message: at.tell({"op": "hello"})
        made.on_request = lambda at, stream, message: self.asked.append((stream, message))
        self.lines.append(made)
        return made

    async def during(self, work: Callable[[NodeAddress], Awaitable[str]]) -> str:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self.meet, "127.0.0.1", 0)
        try:
            port = server.sockets[0].getsockname()[1]
            return await work(NodeAddress("n", "127.0.0.1", port, self.secret))
        finally:
            server.close()
            for made in self.lines:
                made.lose("checked")
            for stranger in list(self.strangers):
                stranger.close()


@checks("M01")
async def code_and_the_line(rig: CheckRig) -> str:
    listener = _Listener()

    async def attack(address: NodeAddress) -> str:
        async with rig.session() as session:
            result = await rig.run(session, "M01.py", PORT=str(address.port))
            expect("REACHED=" in result.text, f"the probe gave no answer: {result.error}")
            expect("REACHED=[]" in result.text, f"code reached the line: {result.text.strip()}")
            expect(not listener.met, "somebody has called the node")
        return "no address of the host leads to it"

    return await listener.during(attack)


@checks("M04")
async def code_and_ray(rig: CheckRig) -> str:
    """What stands for the head is of the same kinds; a real one on this machine is tried too."""
    met: list[object] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(writer.get_extra_info("sockname"))
        writer.close()

    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        os.chmod(folder, 0o755)  # who may not enter is not what keeps code out
        token, raylet = Path(folder, "auth_token"), Path(folder, "raylet")
        token.write_text(secrets.token_hex(32))
        hidden = f"\0divingbell-{secrets.token_hex(8)}"
        servers = [
            await asyncio.start_server(meet, "127.0.0.1", 0),
            await asyncio.start_unix_server(meet, raylet),
            await asyncio.start_unix_server(meet, hidden),
        ]
        raylet.chmod(0o777)
        token.chmod(0o644)
        port = servers[0].sockets[0].getsockname()[1]
        hosts, ports, sockets, files = _ray_here()
        try:
            async with rig.session() as session:
                result = await rig.run(
                    session,
                    "M04.py",
                    PORTS=[port, *ports],
                    HOSTS=hosts,
                    SOCKETS=[str(raylet), hidden, *sockets],
                    FILES=[str(token), str(raylet), *files],
                )
        finally:
            for server in servers:
                server.close()
    expect("REACHED=" in result.text, f"the probe gave no answer: {result.error}")
    expect("REACHED=[]" in result.text, f"code reached Ray: {result.text.strip()}")
    expect(not met, f"somebody has called {met}")
    return f"no port, socket or file of it is there ({len(ports) + len(sockets)} of a real one)"


def _ray_here() -> tuple[list[str], list[int], list[str], list[str]]:
    """Return hosts, ports, sockets and files of a Ray cluster that runs on this machine."""
    folder = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray")
    files = [str(Path.home() / ".ray" / "auth_token"), str(folder / "ray_current_cluster")]
    sockets = [str(path) for path in folder.glob("session_*/sockets/*")][:MOST_SOCKETS]
    try:
        host, _, port = Path(files[1]).read_text().strip().rpartition(":")
        return [host.strip("[]")], [int(port)], sockets, files
    except (OSError, ValueError):
        return [], [], sockets, files


@checks("M02")
async def secrets_on_a_node(rig: CheckRig) -> str:
    secret = secrets.token_hex(24)
    table = {"command": "true", "env": {"TOKEN": secret}}
    servers = read_entries({"shop": table}, Place("the check"))
    node = Node(Settings(servers=tuple(servers), preload=()), "checked")
    expect(not _holds(node, secret), "the node knows the secret of a server")
    return "of a server with a secret nothing is left in what a node has"


@checks("M05")
async def secrets_in_a_replica(rig: CheckRig) -> str:
    secret = secrets.token_hex(24)
    table = {"command": "true", "args": [secret], "env": {"TOKEN": secret}}
    servers = read_entries({"shop": table}, Place("the check"))
    host = GatewayHost(LoadedSettings(Settings(servers=tuple(servers)), None), "checked")
    address = await host.start()

    async def find() -> NodeAddress:
        return address

    link = GatewayLink(find)
    try:
        await link.start()
        settings = await link.settings()
        shared = SharedGateway(link, settings.policy)
        await shared.start()
        [server] = settings.servers
        assert isinstance(server, Server)
        upstream = shared.upstream(server, _ignore, _ignore, _ignore, None)
        upstream.start()
        deadline = time.monotonic() + PATIENCE
        while upstream.state != "failed":  # `true` is no server, and ends at once
            expect(time.monotonic() < deadline, f"the server is still {upstream.state}")
            await asyncio.sleep(SAMPLE)
        has = {"settings": settings, "link": link, "shared": shared, "upstream": upstream}
        expect(not _holds(has, secret), "a replica knows the secret of a server")
        expect(_holds(host, secret), "the gateway itself does not have it: nothing was shown")
        await upstream.stop()
    finally:
        await link.stop()
        await host.stop()
    return "a replica has the name of a server, its tools and how it is doing; the gateway the rest"


def _ignore(heard: object) -> None:
    """Hear nothing."""


def _holds(thing: object, secret: str) -> bool:
    """Whether a text is in what an object refers to."""
    seen: set[int] = set()
    level = [thing]
    for _ in range(DEPTH):
        found: list[object] = []
        for each in level:
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, str | bytes):
                if secret in (each if isinstance(each, str) else each.decode("latin-1")):
                    return True
            elif isinstance(each, dict):
                found += [*each, *each.values()]
            elif isinstance(each, list | tuple | set | frozenset):
                found += each
            elif type(each).__module__.startswith("divingbell"):
                found += getattr(each, "__dict__", {}).values()
                names = getattr(type(each), "__slots__", ())
                found += [getattr(each, name, None) for name in names]
        level = found
    return False


_HOSTILE = (
    struct.pack("!II", 1 << 30, 1 << 30),
    struct.pack("!II", 4, 0) + b"nope",
    frames.pack({"s": 2, "end": True}),
    frames.pack({"s": 1, "op": "x"}) * 2,
    frames.pack({"s": 1, "op": "x", "v": [[]] * 20_000}),
    frames.pack({"s": 1, "op": "x"}) + frames.pack({"s": 1}, bytes(line.PIECE)) * 20,
)
_NO_RESULTS: tuple[object, ...] = (
    None, [], {}, {"status": "fine"}, {"status": "ok", "cell": "1"}, {"status": "ok", "more": 1},
    {"status": "ok", "outputs": [{"type": "text/plain", "at": [0, 1 << 40]}]},
    {"status": "ok", "notes": [1]}, {"status": "ok", "usage": {"wall_ms": "x"}},
    {"status": "ok", "value": {"$": "none"}},
)  # fmt: skip


@checks("M03")
async def frames_of_a_node(rig: CheckRig) -> str:
    listener = _Listener()

    async def attack(address: NodeAddress) -> str:
        for sent in _HOSTILE:
            laid = Line("the node", opens_odd=True)
            await greeting.call(address, laid, {})
            assert laid._transport is not None
            laid._next_number = 99
            laid._transport.write(sent)
            deadline = time.monotonic() + PATIENCE
            while listener.lines[-1].lost is None:
                expect(time.monotonic() < deadline, f"{sent[:60]!r} was taken for frames")
                await asyncio.sleep(SAMPLE)
            laid.lose("checked")
        for form in _NO_RESULTS:
            sizes, body = forms.written([form])
            expect(not _is_read(sizes, body), f"{form!r} was taken for a result")
        return f"{len(_HOSTILE)} lines given up, {len(_NO_RESULTS)} results refused"

    return await listener.during(attack)


def _is_read(header: frames.Header, body: bytes) -> Result | None:
    [form], raw = forms.parsed(header, body)
    try:
        return forms.read_result(form, raw)
    except frames.FrameError:
        return None
