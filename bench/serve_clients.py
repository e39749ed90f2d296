"""Clients of MCP, of both eras, at two replicas of Ray Serve and at one server, for `./dev bench
scale`."""

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
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
from turns import Turns, Unable, Way

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
            answers = Answers()
            ways = {
                REPLICAS: _way(served.replicas, served.tokens, era, answers),
                SERVER: _way(served.server, served.tokens, era, Answers()),
            }
            turns = await Turns(ways).take(rounds)
            ratio = turns.ratio(REPLICAS, SERVER)
            server = table.seconds(median(turns.times(SERVER)))
            measure = f"MCP of {era}, {CLIENTS} clients"
            found += [
                table.times(
                    measure,
                    REPLICAS,
                    turns.times(REPLICAS),
                    ratio=f"{ratio:.2f} of {SERVER}'s {server}",
                    target=table.at_most(ratio, TIMES_SERVER, "×"),
                ),
                answers.row(measure),
            ]
    return found


@dataclass
class Answers:
    """How many were right, and why the first other was not."""

    right: int = 0
    wrong: int = 0
    first: str = ""

    def missed(self, count: int, why: str) -> None:
        self.wrong += count
        self.first = self.first or why

    def row(self, measure: str) -> table.Row:
        asked = self.right + self.wrong
        target = "all right: met" if not self.wrong else f"all right: NOT met ({self.first:.120})"
        return table.Row(measure, REPLICAS, f"{self.right} of {asked} right", target=target)


def _way(url: str, tokens: list[str], era: Era, answers: Answers) -> Way:
    async def turn() -> list[float]:
        taken: list[float] = []
        talks = (
            _talk(url, token, era, number, taken, answers) for number, token in enumerate(tokens)
        )
        await asyncio.gather(*talks)
        if not taken:
            raise Unable(f"no client was answered: {answers.first}")
        return taken

    return turn


async def _talk(
    url: str, token: str, era: Era, number: int, taken: list[float], answers: Answers
) -> None:
    asked = 0
    try:
        async with _client(url, token, era) as client:
            await _run(client, f"x = {1000 * number}")
            for plus in range(CALLS):
                began = time.perf_counter()
                answer = await _run(client, f"x + {plus}")
                taken.append(time.perf_counter() - began)
                asked += 1
                if answer == str(1000 * number + plus):
                    answers.right += 1
                else:
                    answers.missed(1, f"{answer!r}")
    except Exception as error:  # of whatever kind: it is a client that was not served
        answers.missed(CALLS - asked, _first_of(error))


def _first_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


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
