"""How long: calls of `divingbell serve` over stdio, by what it keeps from models.

Servers with each word of `privacy` take turns at the same calls. Nothing in these calls is
personal: what is measured is the looking.

Measured: of three equal servers, the one that was started last answers up to twice as fast. So
they are started in another order at each sitting, until each had each place, and a second one with
`off` is the control: where it differs from the first by more than an aim allows, nothing is said
about that aim.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median

import processes
import table
from calling import SERVER
from mcp import Client, StdioServerParameters
from serving import COMMAND
from turns import Turns

CONTROL = "off, a second one"
WORDS = {"off": "off", CONTROL: "off", "secrets": "secrets", "personal": "personal"}
"""What is measured, and its word."""
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
        self._used: dict[str, list[float]] = {}

    async def batch(self, measure: str, code: str, times: int, parts: int = 1) -> list[float]:
        """Run code so many times, which does the thing in so many parts; return seconds of each."""
        taken, before = [], processor_time(self._pid)
        for _ in range(times):
            started = time.perf_counter()
            result = await self._client.call_tool("execute_python", {"code": code})
            taken.append((time.perf_counter() - started) / parts)
            assert not result.is_error, result
        used = (processor_time(self._pid) - before) / times / parts
        self._used.setdefault(measure, []).append(used)
        return taken

    def used(self, measure: str) -> list[float]:
        """Processor time in each round; as with times, the first is not counted."""
        return self._used[measure][1:]


async def private_serving(
    names: list[str], sittings: int, rounds: int, batch: int
) -> list[table.Row]:
    """The same calls through servers, in turns; aims are judged if each had each place."""
    sat: dict[str, list[tuple[Turns, dict[str, Served]]]] = {}
    for first in range(sittings):
        async with _all_served([*names[first:], *names[:first]]) as served:
            for measure, (code, times, parts) in _calls(batch).items():
                ways = {
                    name: partial(each.batch, measure, code, times, parts)
                    for name, each in served.items()
                }
                turns = await Turns(ways).take(rounds)
                sat.setdefault(measure, []).append((turns, served))
    is_judged = CONTROL in names and sittings % len(names) == 0
    return [row for measure, each in sat.items() for row in _rows(measure, each, is_judged)]


def _calls(batch: int) -> dict[str, tuple[str, int, int]]:
    """Code, how often it is run in a turn, and in how many parts it does the thing."""
    cells = max(1, batch // CALLS_IN_A_CELL)
    return {
        ONE: ("1+1", batch, 1),
        **{
            CALLED.format(name): (
                CALLING.format(size=size, count=CALLS_IN_A_CELL),
                cells,
                CALLS_IN_A_CELL,
            )
            for name, size in (("1 kB", 1_000), ("100 kB", 100_000))
        },
        PRINTED: (PRINTING, 1, 1),
    }


def _rows(
    measure: str, sat: list[tuple[Turns, dict[str, Served]]], is_judged: bool
) -> Iterator[table.Row]:
    names = sat[0][1]
    ratios = {name: geometric_mean(turns.ratio(name, "off") for turns, _ in sat) for name in names}
    control = ratios.get(CONTROL, 1.0)
    noise = max(control, 1 / control)
    for name in names:
        used = [served[name].used(measure) for _, served in sat]
        share = geometric_mean(
            median(a / b for a, b in zip(own, served["off"].used(measure), strict=True))
            for own, (_, served) in zip(used, sat, strict=True)
        )
        is_aim = is_judged and WORDS[name] != "off" and measure in WANTED
        yield table.times(
            measure,
            name,
            [taken for turns, _ in sat for taken in turns.times(name)],
            ratio=f"{ratios[name]:.2f}; processor "
            f"{table.seconds(median(itertools.chain(*used)))}, {share:.2f}",
            target=_judged(ratios[name], WANTED[measure], noise) if is_aim else "",
        )


def _judged(ratio: float, wanted: float, noise: float) -> str:
    if noise > wanted:
        return f"≤ {wanted:g}×: can't be told, two equal ones differ {noise:.2f}×"
    return table.at_most(ratio, wanted, "×")


@asynccontextmanager
async def _all_served(names: list[str]) -> AsyncIterator[dict[str, Served]]:
    served: dict[str, Served] = {}
    with tempfile.TemporaryDirectory() as home:
        async with AsyncExitStack() as stack:
            for name in names:
                before = set(processes.children().get(os.getpid(), ()))
                client = await stack.enter_async_context(Client(_server(Path(home), name)))
                (pid,) = set(processes.children()[os.getpid()]) - before
                served[name] = Served(client, pid)
            yield served


def _server(home: Path, name: str) -> StdioServerParameters:
    """The command of a server that keeps nothing where others would find it."""
    servers = home / "mcp.json"
    tools = {"command": sys.executable, "args": [SERVER]}
    servers.write_text(json.dumps({"mcpServers": {"bench": tools}}))
    folders = {f"XDG_{kind}_HOME": str(home / name) for kind in ("DATA", "CONFIG")}
    arguments = ["serve", f"--privacy={WORDS[name]}", f"--mcp-config={servers}"]
    return StdioServerParameters(command=COMMAND, args=arguments, env={**os.environ, **folders})


def processor_time(pid: int) -> float:
    """Seconds that a process had of all processors, by the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
