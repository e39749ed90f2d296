"""Two thousand tools: how long a search takes, and what it takes to hold them.

By words, as installed; how search by meaning does is measured by `./dev bench search`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import bells
import lists
import processes
import table
from mcp import Client, StdioServerParameters

from divingbell import Divingbell

MEASURE = "search_tools"
AT_MOST = 0.010
HELD = "holding all tools"
_MB = 1 << 20

CELL = """
import time
taken = []
for query in queries:
    started = time.perf_counter()
    found = search_tools(query, limit=5)
    taken.append(time.perf_counter() - started)
    assert found, query
taken
"""


async def searching(count: int) -> list[table.Row]:
    """Searches in the gateway, and from inside a cell, over all tools."""
    queries = [question["query"] for question in lists.search_queries()][:count]
    async with lists.served() as entries, _ring(entries) as bell:
        async with asyncio.timeout(bells.PATIENCE):
            for name in entries:
                await bell.gateway.fleet.wait_for_tools(name)
        tools = len(bell.gateway.catalog.tools())
        gateway = []
        for query in queries:
            started = time.perf_counter()
            await bell.gateway.search(query, limit=5)
            gateway.append(time.perf_counter() - started)
        async with bell.session() as session:
            result = await session.run(CELL, context={"queries": queries})
            assert result.status == "ok", result.error
            inside: list[float] = result.value
    return [
        _row(f"{tools:,} tools: in the gateway", gateway),
        _row(f"{tools:,} tools: from inside a cell", inside),
    ]


def _ring(entries: Mapping[str, Any]) -> AbstractAsyncContextManager[Divingbell]:
    return bells.ring(pool=0, servers=entries, search="words")


def _row(subject: str, taken: list[float]) -> table.Row:
    target = table.at_most(median(taken) * 1000, AT_MOST * 1000, " ms")
    return table.times(MEASURE, subject, taken, target=target)


async def holding(starts: int) -> list[table.Row]:
    """`divingbell serve` with all of them behind it, to its first answer to a search."""
    times: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(starts):
        async with lists.served() as entries:
            for name, behind in (
                ("no server", {}),
                (f"{len(entries)} servers, for the first time", entries),
                (f"{len(entries)} servers, seen before", entries),
            ):
                started = time.perf_counter()
                async with serving(behind) as client:
                    await client.call_tool("search_tools", {"query": "find open pull requests"})
                    times.setdefault(name, []).append(time.perf_counter() - started)
                    memory.setdefault(name, []).append(await _settled(client, bool(behind)) / _MB)
    base = median(memory["no server"])
    rows = []
    for name in times:
        used = median(memory[name])
        words = "the host process has" if name == "no server" else "more than with none"
        shown = used if name == "no server" else used - base
        subject = f"start to first search, {name}"
        row = table.times(HELD, subject, times[name], ratio=f"{shown:.0f} MB: {words}")
        rows.append(row)
    rows.append(table.Row(HELD, "tools", f"{lists.count():,}"))
    return rows


@asynccontextmanager
async def serving(entries: Mapping[str, Any]) -> AsyncIterator[Client]:
    """A client of `divingbell serve`, behind which these servers stand."""
    with TemporaryDirectory(prefix="divingbell-bench-") as folder:
        config = Path(folder, "mcp.json")
        config.write_text(json.dumps({"mcpServers": entries}))
        program = str(Path(sys.executable).with_name("divingbell"))
        arguments = ["serve", "--mcp-config", str(config)]
        server = StdioServerParameters(command=program, args=arguments, env=lists.environment())
        async with Client(server, read_timeout_seconds=bells.PATIENCE) as client:
            yield client


async def _settled(client: Client, has_tools: bool) -> int:
    """The memory of the process that serves, once all tools are there."""
    async with asyncio.timeout(bells.PATIENCE):
        while has_tools:
            code = "len(list_mcp_tools())"
            answer = await client.call_tool("execute_python", {"code": code})
            assert answer.structured_content is not None
            if answer.structured_content.get("value") == lists.count():
                break
            await asyncio.sleep(0.1)
    return processes.proportional_memory([_serving_process()])


def _serving_process() -> int:
    """The one child of this process that is `divingbell serve`."""
    for pid in processes.children().get(os.getpid(), []):
        if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return pid
    raise RuntimeError("divingbell serve does not run")
