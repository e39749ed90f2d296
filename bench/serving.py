"""How long: a warm call of `divingbell serve --http`, against a plain server of the SDK's.

Both evaluate `1+1` for the same client; the plain one in its own process, without any walls.
"""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import lists
import table
from calling import BATCH, SERVER, TIMES_DIRECT, Era
from mcp import Client
from mcp_types import CallToolResult, TextContent
from turns import Turns

COMMAND = str(Path(sys.executable).with_name("divingbell"))
CODE, VALUE = "1+1", "2"
OURS, PLAIN = "divingbell serve", "plain server, no walls"


async def serving(rounds: int) -> list[table.Row]:
    """One call after the other, in both eras of the protocol."""
    rows = []
    async with (
        _served([COMMAND, "serve", "--http", "--no-token"]) as ours,
        _served([SERVER]) as plain,
    ):
        for era in get_args(Era):
            turns = await _take_turns(ours, plain, era, rounds)
            bell, direct = turns.times(OURS), turns.times(PLAIN)
            ratio = turns.ratio(OURS, PLAIN)
            target = table.at_most(ratio, TIMES_DIRECT, "×")
            measure, of = "a warm 1+1 over HTTP", f"protocol of {era}"
            words = f"{ratio:.2f}× plain"
            rows += [
                table.times(measure, f"{of}: {OURS}", bell, ratio=words, target=target),
                table.times(measure, f"{of}: {PLAIN}", direct, ratio="1"),
            ]
    return rows


async def _take_turns(ours: str, plain: str, era: Era, rounds: int) -> Turns:
    mode = "legacy" if era == "2025" else "auto"
    async with Client(ours, mode=mode) as bell, Client(plain, mode=mode) as other:
        assert bell.protocol_version == other.protocol_version
        assert bell.protocol_version.startswith(era), bell.protocol_version
        ways = {
            OURS: partial(_batch, bell, "execute_python"),
            PLAIN: partial(_batch, other, "evaluate"),
        }
        return await Turns(ways).take(rounds)


async def _batch(client: Client, tool: str) -> list[float]:
    taken = []
    for _ in range(BATCH):
        started = time.perf_counter()
        result = await client.call_tool(tool, {"code": CODE})
        taken.append(time.perf_counter() - started)
        assert _text(result) == VALUE, result
    return taken


def _text(result: CallToolResult) -> str:
    texts: list[Any] = [block.text for block in result.content if isinstance(block, TextContent)]
    return "".join(texts).strip()


@asynccontextmanager
async def _served(arguments: list[str]) -> AsyncIterator[str]:
    port = lists.free_port()
    with lists.running([*arguments, f"--port={port}"]):
        await lists.listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
