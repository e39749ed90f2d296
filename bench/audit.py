"""What the audit log costs, and whether it holds when its process is killed: `./dev bench audit`.

Calls by code with the log and without it, in turns; then processes that are killed while they
write, and whole Divingbells while code calls a server, each of whose logs is verified. Rows with a
target say whether it was met.
"""

import asyncio
import base64
import contextlib
import fcntl
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apart
import bells
import calling
import table
from runner import Amount, Benchmark
from turns import Turns, Way

from divingbell import Session
from divingbell.audit import reading, verifying
from divingbell.audit.signing import FILE_NAME, load_key
from divingbell.host import private_file

FORKS = str(Path(__file__).with_name("audit_forks.py"))
WITH, WITHOUT = "with the audit log", "without"
WORKS = {
    "writer": "a process that writes records",
    "caller": "a Divingbell with a server",
}
"""What is killed, by the name that audit_forks.py has for it."""
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


async def kills(writers: int, callers: int) -> list[table.Row]:
    """Processes killed while they work: what had left is recorded, and no log looks forged."""
    works = ["caller"] * callers + ["writer"] * writers
    lanes = [asyncio.to_thread(_killed, works[lane::AT_ONCE]) for lane in range(AT_ONCE)]
    found = [outcome for outcomes in await asyncio.gather(*lanes) for outcome in outcomes]
    rows = []
    for work, words in WORKS.items():
        ours = [each for each in found if each.work == work]
        sent, torn = sum(each.sent for each in ours), sum(each.is_torn for each in ours)
        lost, misjudged = sum(each.lost for each in ours), sum(each.is_misjudged for each in ours)
        of = f"{len(ours):,} kills of {words}, {sent:,} calls"
        rows += [
            table.Row("calls that left unrecorded", of, str(lost), "", table.at_most(lost, 0, "")),
            table.Row("logs that were taken for forged", of, str(misjudged), f"{torn} torn",
                      table.at_most(misjudged, 0, "")),
        ]  # fmt: skip
    return rows


class Outcome(NamedTuple):
    """What was found after a kill."""

    work: str
    sent: int
    """Calls that had left."""
    lost: int
    """Those of them without a record."""
    is_misjudged: bool
    is_torn: bool


def _killed(works: Sequence[str]) -> list[Outcome]:
    """Kill one after the other; return what was found."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, FORKS], stdin=pipe, stdout=pipe, text=True) as forks:
        assert forks.stdin is not None and forks.stdout is not None
        outcomes = []
        for work in works:
            with tempfile.TemporaryDirectory(prefix="audit-kill-") as name:
                key = base64.b64encode(os.urandom(32))
                private_file.write(Path(name) / FILE_NAME, key)
                print(work, random.uniform(0, LONGEST_LIFE), name, file=forks.stdin, flush=True)
                if forks.stdout.readline() != "killed\n":
                    raise RuntimeError(f"there was no {work} to be killed")
                outcomes.append(_outcome(work, Path(name)))
        forks.stdin.close()
    return outcomes


def _outcome(work: str, folder: Path) -> Outcome:
    sent = {int(line) for path in folder.glob("sent-*") for line in _final(path).split()}
    recorded = {
        json.loads(record["arguments"]["text"])["order"]
        for record in reading.records(folder / "log")
        if record["kind"] == "call.started"
    }
    public = load_key(None, folder, {}, None).public
    [found] = verifying.verify(folder / "log", folder / "heads", public)
    is_misjudged = found.verdict in ("cut", "changed")
    return Outcome(work, len(sent), len(sent - recorded), is_misjudged, found.verdict == "torn")


def _final(path: Path) -> str:
    """What is in a file once nobody writes to it any more: a server outlives its client a while."""
    deadline = time.monotonic() + PATIENCE
    with open(path) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                return file.read()


BENCHMARK = Benchmark(
    "audit",
    __doc__,
    parts={
        "calls": lambda chosen: calls(chosen.rounds),
        "gather": lambda chosen: gathered(chosen.rounds),
        "kills": lambda chosen: kills(chosen.kills, chosen.houses),
    },
    amounts={
        "rounds": Amount("turns with the log and without", 40, 3),
        "kills": Amount("processes that are killed while they write records", 1000, 10),
        "houses": Amount("Divingbells that are killed while code calls a server", 60, 2),
    },
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
