"""What the audit log costs, and whether it holds when its process is killed: `./dev bench audit`.

Calls by code with the log and without it, in turns; then processes that are killed while they
write, each of whose logs is verified. Rows with a target say whether it was met.
"""

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import apart
import bells
import calling
import table
from runner import Amount, Benchmark
from turns import Turns, Way

from divingbell import Session
from divingbell.audit import reading, verifying
from divingbell.audit.signing import load_key

WRITER = str(Path(__file__).with_name("audit_writer.py"))
WITH, WITHOUT = "with the audit log", "without"
TIMES_ONE, TIMES_MANY = 1.2, 1.3
LONGEST_LIFE = 0.3
"""Seconds after its first call within which a process is killed."""
AT_ONCE = 2
"""Processes that are killed at the same time."""
PATIENCE = 60.0


@contextlib.asynccontextmanager
async def _sessions() -> AsyncIterator[Mapping[str, Session]]:
    """A session with the log and one without, each with a server of its own."""
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="audit-bench-"))
        table_of = {"folder": f"{folder}/log", "heads": f"{folder}/heads"}
        modes: dict[str, dict[str, Any]] = {
            WITH: {"audit": "on", "audit_log": table_of},
            WITHOUT: {"audit": "off"},
        }
        found = {}
        for name, settings in modes.items():
            bell = await stack.enter_async_context(bells.ring(pool=0, **settings))
            entry = await stack.enter_async_context(calling.server("stdio"))
            found[name] = await stack.enter_async_context(bell.session())
            calling.connect(bell, entry, "2026")
            await calling.run(found[name], calling.ONE_BY_ONE, count=1)
        yield found


async def calls(rounds: int) -> list[table.Row]:
    """One call after the other."""
    return await _compared("a call", calling._call_from_code, rounds, TIMES_ONE)


async def gathered(rounds: int) -> list[table.Row]:
    """A hundred calls at once, to a tool that takes its time."""
    measure = f"{calling.AT_ONCE} calls at once"
    return await _compared(measure, calling._gather_from_code, rounds, TIMES_MANY)


async def _compared(measure: str, call: Any, rounds: int, most: float) -> list[table.Row]:
    async with _sessions() as sessions:
        ways: dict[str, Way] = {name: partial(call, each) for name, each in sessions.items()}
        turns = await Turns(ways).take(rounds)
    ratio = turns.ratio(WITH, WITHOUT)
    target = table.at_most(ratio, most, "×")
    shown = f"{ratio:.2f}× without"
    return [
        table.times(measure, WITH, turns.times(WITH), ratio=shown, target=target),
        table.times(measure, WITHOUT, turns.times(WITHOUT), ratio="1"),
    ]


async def kills(count: int) -> list[table.Row]:
    """Processes killed while they write: what had left is recorded, and no log looks forged."""
    lost = misjudged = torn = sent = 0
    for _ in range(0, count, AT_ONCE):
        outcomes = await asyncio.gather(*[asyncio.to_thread(_killed) for _ in range(AT_ONCE)])
        for outcome in outcomes:
            lost, misjudged = lost + outcome[0], misjudged + outcome[1]
            torn, sent = torn + outcome[2], sent + outcome[3]
    of = f"{count:,} kills, {sent:,} calls"
    return [
        table.Row("calls that left unrecorded", of, str(lost), "", table.at_most(lost, 0, "")),
        table.Row("logs that were taken for forged", of, str(misjudged), f"{torn} torn",
                  table.at_most(misjudged, 0, "")),
    ]  # fmt: skip


def _killed() -> tuple[int, bool, bool, int]:
    """Kill one; return the calls that were lost, whether its log was misjudged, whether it is torn,
    and how many calls had left."""
    with tempfile.TemporaryDirectory(prefix="audit-kill-") as name:
        folder = Path(name)
        with subprocess.Popen([sys.executable, WRITER, name]) as process:
            left = folder / f"sent-{process.pid}"
            deadline = time.monotonic() + PATIENCE
            while not (left.exists() and left.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(random.uniform(0, LONGEST_LIFE))
            process.send_signal(signal.SIGKILL)
        sent = {int(line) for line in left.read_text().split()}
        recorded = {
            record["call"]
            for record in reading.records(folder / "log")
            if record["kind"] == "call.started"
        }
        public = load_key(None, folder, {}, None).public
        [found] = verifying.verify(folder / "log", folder / "heads", public)
        return (
            len(sent - recorded),
            found.verdict in ("cut", "changed"),
            found.verdict == "torn",
            len(sent),
        )


BENCHMARK = Benchmark(
    "audit",
    __doc__,
    parts={
        "calls": lambda chosen: calls(chosen.rounds),
        "gather": lambda chosen: gathered(chosen.rounds),
        "kills": lambda chosen: kills(chosen.kills),
    },
    amounts={
        "rounds": Amount("turns with the log and without", 40, 3),
        "kills": Amount("processes that are killed", 1000, 4),
    },
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
