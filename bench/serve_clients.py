"""Clients of MCP, of both eras, at two replicas of Ray Serve and at one server, for `./dev bench
scale`."""

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple, get_args

import httpx2
import lists
import table
from calling import Era
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from tests.scale import ray_machines
from turns import Turns, Way

CLIENTS = 20
CALLS = 5
TIMES_SERVER = 3.5
PATIENCE = 120.0
REPLICAS, SERVER = "two replicas of Ray Serve", "divingbell serve --http"


class Served(NamedTuple):
    """The addresses of both, and the tokens that either takes: each client is a user."""

    replicas: str
    server: str
    tokens: list[str]


async def rows(rounds: int) -> list[table.Row]:
    """Compare them, with all clients of one era at once; each checks every answer."""
    found = []
    async with _served() as served:
        for era in get_args(Era):
            async with AsyncExitStack() as stack:
                ways = {
                    REPLICAS: await _way(stack, served.replicas, served.tokens, era),
                    SERVER: await _way(stack, served.server, served.tokens, era),
                }
                turns = await Turns(ways).take(rounds)
            ratio = turns.ratio(REPLICAS, SERVER)
            server = table.seconds(median(turns.times(SERVER)))
            found.append(
                table.times(
                    f"MCP of {era}, {CLIENTS} clients",
                    REPLICAS,
                    turns.times(REPLICAS),
                    ratio=f"{ratio:.2f} of {SERVER}'s {server}; every answer right",
                    target=table.at_most(ratio, TIMES_SERVER, "×"),
                )
            )
    return found


async def _way(stack: AsyncExitStack, url: str, tokens: list[str], era: Era) -> Way:
    clients = [await stack.enter_async_context(_client(url, token, era)) for token in tokens]

    async def turn() -> list[float]:
        taken: list[float] = []
        await asyncio.gather(
            *(_talk(client, number, taken) for number, client in enumerate(clients))
        )
        return taken

    return turn


async def _talk(client: Client, number: int, taken: list[float]) -> None:
    await _run(client, f"x = {1000 * number}")
    for plus in range(CALLS):
        began = time.perf_counter()
        answer = await _run(client, f"x + {plus}")
        taken.append(time.perf_counter() - began)
        assert answer == str(1000 * number + plus), f"{answer!r} for {number} and {plus}"


async def _run(client: Client, code: str) -> str:
    result = await client.call_tool("execute_python", {"code": code})
    return "".join(block.text for block in result.content if isinstance(block, TextContent)).strip()


@asynccontextmanager
async def _client(url: str, token: str, era: Era) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(timeout=PATIENCE, headers=headers) as inner:
        transport = streamable_http_client(url, http_client=inner)
        async with Client(transport, mode="legacy" if era == "2025" else "auto") as client:
            yield client


@asynccontextmanager
async def _served() -> AsyncIterator[Served]:
    tokens = [secrets.token_urlsafe(24) for _ in range(CLIENTS)]
    with tempfile.TemporaryDirectory() as name, ray_machines.running() as machines:
        folder = Path(name)
        file, settings = folder / "tokens", folder / "divingbell.toml"
        file.touch(mode=0o600)
        file.write_text("".join(f"user-{at} {token}\n" for at, token in enumerate(tokens)))
        settings.write_text(
            f'audit = "off"\nskills = "off"\npreload = []\nmax_sessions = {2 * CLIENTS}\npool = 1\n'
        )
        from ray import serve

        from divingbell.scale import ray_access
        from divingbell.scale import serve as ours

        ray_access.connect(machines.address, insecure=False)
        ports = lists.free_port(), lists.free_port()
        serve.start(http_options={"port": ports[0]})
        given = {"config": str(settings), "token_file": str(file), "replicas": "2"}
        command = [
            *("-m", "divingbell", "serve", "--http", f"--port={ports[1]}"),
            *(f"--config={settings}", f"--token-file={file}"),
        ]
        try:
            await asyncio.to_thread(serve.run, ours.app(given), name="mcp", route_prefix="/")
            with lists.running(command):
                await lists.listening(ports[1])
                yield Served(*(f"http://127.0.0.1:{port}/mcp" for port in ports), tokens)
        finally:
            serve.shutdown()
