"""Divingbell over HTTP: what one user, or somebody without a token, can take from the others."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from divingbell.promises.check.rig import CheckRig, Watch, checks, expect

if TYPE_CHECKING:
    from divingbell.surfaces.http.connections import Connections

_PATIENCE = 10.0
_USERS = {"ann": "ann-has-a-long-token", "ben": "ben-has-a-long-token"}
_HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "check", "version": "1"},
        },
    }
).encode()
_STREAMS = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class _Site:
    """A server of our own at a port of this machine."""

    port: int
    connections: "Connections"

    @contextlib.asynccontextmanager
    async def begun(self, user: str | None, length: int, body: bytes) -> AsyncIterator[_STREAMS]:
        """A request that is sent as far as it goes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        token = "" if user is None else f"Authorization: Bearer {_USERS[user]}\r\n"
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{token}Content-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            yield reader, writer
        finally:
            writer.transport.abort()

    async def status(self, user: str, body: bytes = _HELLO) -> int:
        """The status that a whole request is answered with."""
        async with self.begun(user, len(body), body) as (reader, _):
            return await _status(reader)


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of an answer; 0 where the connection is closed instead."""
    async with asyncio.timeout(_PATIENCE):
        try:
            words = (await reader.readline()).split()
        except ConnectionError:
            return 0
    return int(words[1]) if len(words) > 1 else 0


@contextlib.asynccontextmanager
async def _site(rig: CheckRig) -> AsyncIterator[_Site]:
    from divingbell.surfaces.auth import Tokens, hash_of
    from divingbell.surfaces.http import listening
    from divingbell.surfaces.http.application import application

    tokens = Tokens({name: hash_of(token) for name, token in _USERS.items()})
    app, ready = application(rig.bell, tokens), asyncio.Event()
    with listening.bound("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(listening.serve(app, listener, ready.set))
        try:
            await ready.wait()
            yield _Site(listener.getsockname()[1], app.door.connections)
        finally:
            serving.cancel()
            await asyncio.wait([serving])


@checks("T50")
async def connections_of_one_user(rig: CheckRig) -> str:
    from divingbell.surfaces.mcp.openings import MAX_CONNECTIONS

    async with _site(rig) as site:
        found = [await site.status("ann") for _ in range(MAX_CONNECTIONS + 1)]
        expect(found[:-1] == [200] * MAX_CONNECTIONS, f"the first were answered with {set(found)}")
        expect(found[-1] == 429, f"one too many was answered with {found[-1]}")
        other = await site.status("ben")
        expect(other == 200, f"another user was answered with {other}")
    return f"{MAX_CONNECTIONS} and no more; another user has his own"


@checks("T51", alone=True)
async def bodies_to_choke_on(rig: CheckRig) -> str:
    lists = b'{"a":[' + b"[]," * 2_000_000 + b"[]]}"
    async with _site(rig) as site, Watch() as watch:
        found = await site.status("ann", lists)
        expect(found == 413, f"two million lists were answered with {found}")
        async with site.begun("ann", 1 << 30, b"") as (reader, _):
            found = await _status(reader)
        expect(found == 413, f"a gigabyte was answered with {found}")
        async with site.begun(None, 1 << 20, b"x" * 1000) as (reader, _):
            found = await _status(reader)
        expect(found == 401, f"half a body without a token was answered with {found}")
    return f"refused before they are parsed, or read; {watch.judge()}"


@checks("T52")
async def half_requests_of_strangers(rig: CheckRig) -> str:
    from divingbell.surfaces.http.connections import MAX_OF_PEER

    async with _site(rig) as site, contextlib.AsyncExitStack() as stack:
        begun = []
        for _ in range(MAX_OF_PEER + 10):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            stack.callback(writer.transport.abort)
            writer.write(b"POST /mcp HTTP/1.1\r\nHost: loc")
            begun.append((reader, writer))
        found = await site.status("ann")
        expect(found == 200, f"a user with a token was answered with {found}")
        expect(await _status(begun[0][0]) == 0, "the oldest was not closed")
        kept = len(site.connections)
        expect(0 < kept <= MAX_OF_PEER, f"{kept} connections of strangers are kept")
    return f"{kept} are kept, each for seconds; a user with a token gets in"


@checks("T53")
async def half_requests_of_a_user(rig: CheckRig) -> str:
    from divingbell.surfaces.http.quotas import MAX_REQUESTS

    async with _site(rig) as site, contextlib.AsyncExitStack() as stack:
        for _ in range(MAX_REQUESTS):
            await stack.enter_async_context(site.begun("ann", len(_HELLO) + 1, _HELLO))
        async with site.begun("ann", len(_HELLO) + 1, _HELLO) as (reader, _):
            found = await _status(reader)
        expect(found == 429, f"one too many was answered with {found}")
        other = await site.status("ben")
        expect(other == 200, f"another user was answered with {other}")
    return f"{MAX_REQUESTS} at once and no more; another user has his own"
