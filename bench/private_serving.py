"""How long: calls of `divingbell serve` over stdio, by what it keeps from models.

Three servers, one for each word of `privacy`, take turns at the same calls. Nothing in these calls
is personal: what is measured is the looking.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median

import processes
import table
from calling import SERVER
from mcp import Client, StdioServerParameters
from serving import COMMAND
from turns import Turns

WORDS = ("off", "secrets", "personal")
ONE, PRINTED = "a warm 1+1 through serve", "a cell that prints 1 MB by line"
CALLED = "a call from code with a result of {}"
WANTED = {ONE: 1.1, PRINTED: 1.3}
"""At most so many times as long as with `off`."""
LINE = "2026-03-02 12:00:00 INFO job {number:05} wrote 12 rows of 40 columns"
PRINTING = f"for number in range(15_000):\n    print(f'{LINE}')"
CALLING = """
from servers.bench import page
for _ in range({count}):
    assert len(page({size})) == {size}
"""
CALLS_IN_A_CELL = 10


class Served:
    """One server, and the processor time that its process took for each thing."""

    def __init__(self, client: Client, pid: int) -> None:
        self._client, self._pid = client, pid
        self.processor: dict[str, list[float]] = {}

    async def batch(self, measure: str, code: str, times: int, parts: int = 1) -> list[float]:
        """Run code so many times, which does the thing in so many parts; return seconds of each."""
        taken, before = [], _processor_time(self._pid)
        for _ in range(times):
            started = time.perf_counter()
            result = await self._client.call_tool("execute_python", {"code": code})
            taken.append((time.perf_counter() - started) / parts)
            assert not result.is_error, result
        used = (_processor_time(self._pid) - before) / times / parts
        self.processor.setdefault(measure, []).append(used)
        return taken


async def private_serving(rounds: int, batch: int) -> list[table.Row]:
    """The same calls through three servers, in turns."""
    rows: list[table.Row] = []
    calls = {
        ONE: ("1+1", batch, 1),
        **{
            CALLED.format(name): (
                CALLING.format(size=size, count=CALLS_IN_A_CELL),
                max(1, batch // CALLS_IN_A_CELL),
                CALLS_IN_A_CELL,
            )
            for name, size in (("1 kB", 1_000), ("100 kB", 100_000))
        },
        PRINTED: (PRINTING, 1, 1),
    }
    async with _all_served() as served:
        for measure, (code, times, parts) in calls.items():
            ways = {
                word: partial(each.batch, measure, code, times, parts)
                for word, each in served.items()
            }
            turns = await Turns(ways).take(rounds)
            rows += _rows(measure, turns, served)
    return rows


def _rows(measure: str, turns: Turns, served: dict[str, Served]) -> Iterator[table.Row]:
    # As with times, the first round is not counted.
    used = {word: each.processor[measure][1:] for word, each in served.items()}
    for word in WORDS:
        ratio = turns.ratio(word, "off")
        share = median(a / b for a, b in zip(used[word], used["off"], strict=True))
        wanted = WANTED.get(measure) if word != "off" else None
        yield table.times(
            measure,
            word,
            turns.times(word),
            ratio=f"{ratio:.2f}; processor {table.seconds(median(used[word]))}, {share:.2f}",
            target=table.at_most(ratio, wanted, "×") if wanted else "",
        )


@asynccontextmanager
async def _all_served() -> AsyncIterator[dict[str, Served]]:
    served: dict[str, Served] = {}
    with tempfile.TemporaryDirectory() as home:
        async with AsyncExitStack() as stack:
            for word in WORDS:
                before = set(processes.children().get(os.getpid(), ()))
                client = await stack.enter_async_context(Client(_server(Path(home), word)))
                (pid,) = set(processes.children()[os.getpid()]) - before
                served[word] = Served(client, pid)
            yield served


def _server(home: Path, word: str) -> StdioServerParameters:
    """The command of a server that keeps nothing where others would find it."""
    servers = home / "mcp.json"
    tools = {"command": sys.executable, "args": [SERVER]}
    servers.write_text(json.dumps({"mcpServers": {"bench": tools}}))
    folders = {f"XDG_{name}_HOME": str(home / word) for name in ("DATA", "CONFIG")}
    arguments = ["serve", f"--privacy={word}", f"--mcp-config={servers}"]
    return StdioServerParameters(command=COMMAND, args=arguments, env={**os.environ, **folders})


def _processor_time(pid: int) -> float:
    """Seconds that a process had of all processors, by the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
