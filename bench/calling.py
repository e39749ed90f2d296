"""How long: a call from inside the sandbox, against the same call by the SDK's client directly."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

import bells
import lists
import table
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult
from turns import Turns

from divingbell import Divingbell, Session
from divingbell.settings import servers
from divingbell.settings.tables import Place

SERVER = str(Path(__file__).with_name("tool_server.py"))
TIMES_DIRECT = 1.5
BATCH = 20
"""Calls in a row before it is the other one's turn."""
AT_ONCE = 100
PAUSE = 0.05
ALL_WITHIN = 0.5

OURS = "from code"
DIRECT = "SDK's client, directly"

Era = Literal["2026", "2025"]

ONE_BY_ONE = """
import time
from servers.bench import echo
taken = []
for number in range(count):
    started = time.perf_counter()
    answer = echo(f"number {number}")
    taken.append(time.perf_counter() - started)
    assert answer == f"number {number}"
taken
"""
GATHERED = """
import asyncio, time
from servers.bench import wait
started = time.perf_counter()
answers = await asyncio.gather(*[wait(pause) for _ in range(count)])
taken = time.perf_counter() - started
assert answers == ["done"] * count
taken
"""


async def calls(rounds: int) -> list[table.Row]:
    """One call after the other, over both transports and in both eras of the protocol."""
    rows = []
    kinds: Sequence[tuple[str, Era]] = [
        (transport, era) for transport in ("stdio", "HTTP") for era in get_args(Era)
    ]
    async with bells.ring(pool=0) as bell:
        for transport, era in kinds:
            async with server(transport) as entry, _both(bell, entry, era) as (session, client):
                ways = {OURS: partial(_call_from_code, session), DIRECT: partial(_call, client)}
                turns = await Turns(ways).take(rounds)
            ratio = turns.ratio(OURS, DIRECT)
            of = f"{transport}, protocol of {era}"
            target = table.at_most(ratio, TIMES_DIRECT, "×")
            rows += [
                table.times(
                    "a call",
                    f"{of}: {OURS}",
                    turns.times(OURS),
                    ratio=_times(ratio),
                    target=target,
                ),
                table.times("a call", f"{of}: {DIRECT}", turns.times(DIRECT), ratio="1"),
            ]
    return rows


async def gathered(rounds: int) -> list[table.Row]:
    """A hundred calls at once to a tool that takes its time."""
    rows = []
    for transport in ("stdio", "HTTP"):
        async with (
            bells.ring(pool=0) as bell,
            server(transport) as entry,
            _both(bell, entry, "2026") as (session, client),
        ):
            ways = {OURS: partial(_gather_from_code, session), DIRECT: partial(_gather, client)}
            turns = await Turns(ways).take(rounds)
        ours, ratio = turns.times(OURS), turns.ratio(OURS, DIRECT)
        measure = f"{AT_ONCE} calls at once, {PAUSE * 1000:g} ms each"
        target = table.at_most(median(ours), ALL_WITHIN, " s")
        rows += [
            table.times(measure, f"{transport}: gather", ours, ratio=_times(ratio), target=target),
            table.times(measure, f"{transport}: {DIRECT}", turns.times(DIRECT), ratio="1"),
        ]
    return rows


async def run(session: Session, code: str, **context: Any) -> Any:
    result = await session.run(code, context=context)
    assert result.status == "ok", result.error
    return result.value


async def _call_from_code(session: Session) -> list[float]:
    taken: list[float] = await run(session, ONE_BY_ONE, count=BATCH)
    return taken


async def _call(client: Client) -> list[float]:
    taken = []
    for number in range(BATCH):
        started = time.perf_counter()
        result = await client.call_tool("echo", {"text": f"number {number}"})
        taken.append(time.perf_counter() - started)
        assert result.structured_content == {"result": f"number {number}"}
    return taken


async def _gather_from_code(session: Session) -> list[float]:
    return [await run(session, GATHERED, count=AT_ONCE, pause=PAUSE)]


async def _gather(client: Client) -> list[float]:
    started = time.perf_counter()
    calls = [client.call_tool("wait", {"seconds": PAUSE}) for _ in range(AT_ONCE)]
    results: Sequence[CallToolResult] = await asyncio.gather(*calls)
    taken = time.perf_counter() - started
    assert all(result.structured_content == {"result": "done"} for result in results)
    return [taken]


@asynccontextmanager
async def server(transport: str) -> AsyncIterator[Mapping[str, Any]]:
    """The entry of the measured server; over stdio each client has a process of its own."""
    if transport == "stdio":
        yield {"command": sys.executable, "args": [SERVER]}
        return
    port = lists.free_port()
    with lists.running([SERVER, f"--port={port}"]):
        await lists.listening(port)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


@asynccontextmanager
async def _both(
    bell: Divingbell, entry: Mapping[str, Any], era: Era
) -> AsyncIterator[tuple[Session, Client]]:
    """The two ways to it."""
    mode = "legacy" if era == "2025" else "auto"
    there: Any = entry.get("url")
    if there is None:
        there = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with Client(there, mode=mode) as client, bell.session() as session:
        connect(bell, entry, era)
        try:
            await run(session, ONE_BY_ONE, count=1)
            spoken = bell.gateway.fleet.upstream("bench").protocol_version
            assert spoken == client.protocol_version and spoken.startswith(era), spoken
            yield session, client
        finally:
            await bell.gateway.remove("bench")


def connect(bell: Divingbell, entry: Mapping[str, Any], era: Era) -> None:
    """Add the server; left to itself, the gateway would choose the newest protocol."""
    (known,) = servers.read_entries({"bench": entry}, Place("the benchmark"))
    bell.gateway.add(known)
    bell.gateway.fleet.upstream("bench")._link._is_legacy = era == "2025"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}× direct"
