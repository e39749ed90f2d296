"""The library without `await` beside the one with it, and what importing it takes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import bells
import table
from turns import Turns

from divingbell import Session, sync

CELLS = 50
"""Cells of one turn."""
ASYNC, SYNC, HOP = "with await", "divingbell.sync", "a call of nothing into a thread's loop"
TIMES_ASYNC = 1.5
IMPORT, HELP, BARE = "import divingbell", "divingbell --help", "python alone"
MOST_IMPORT, MOST_HELP = 0.03, 0.15


async def warm_cells(rounds: int) -> list[table.Row]:
    """A warm `1 + 1` by both faces, and the hop between threads that one of them takes."""
    async with bells.ring() as bell, bell.session() as session:
        with sync.Divingbell() as plain, plain.session() as held:
            ways = {
                ASYNC: partial(_with_await, session),
                SYNC: partial(asyncio.to_thread, _timed, partial(held.run, "1 + 1")),
                HOP: partial(asyncio.to_thread, _timed, partial(plain._portal.call, int)),
            }
            turns = await Turns(ways).take(rounds)
    allowed = TIMES_ASYNC * median(turns.times(ASYNC)) + median(turns.times(HOP))
    ratio = turns.ratio(SYNC, ASYNC)
    part = median(turns.times(SYNC)) / allowed
    target = table.at_most(part, 1.0, " of 1.5× plus the hop")
    measure = "a warm 1 + 1"
    return [
        table.times(measure, ASYNC, turns.times(ASYNC), ratio="1"),
        table.times(measure, HOP, turns.times(HOP)),
        table.times(measure, SYNC, turns.times(SYNC), ratio=f"{ratio:.2f}×", target=target),
    ]


async def _with_await(session: Session) -> list[float]:
    taken = []
    for _ in range(CELLS):
        began = time.perf_counter()
        await session.run("1 + 1")
        taken.append(time.perf_counter() - began)
    return taken


def _timed(work: Callable[[], object]) -> list[float]:
    taken = []
    for _ in range(CELLS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


async def imports(rounds: int) -> list[table.Row]:
    """A program that imports the library and does nothing, and `--help`, beside doing nothing."""
    programs = {IMPORT: ["-c", IMPORT], HELP: ["-m", "divingbell", "--help"], BARE: ["-c", "pass"]}
    turns = await Turns({name: partial(_program, words) for name, words in programs.items()}).take(
        rounds
    )
    more = median(turns.times(IMPORT)) - median(turns.times(BARE))
    target = table.at_most(more * 1000, MOST_IMPORT * 1000, " ms more")
    helped = table.at_most(median(turns.times(HELP)) * 1000, MOST_HELP * 1000, " ms")
    return [
        table.times("a program", IMPORT, turns.times(IMPORT), target=target),
        table.times("a program", HELP, turns.times(HELP), target=helped),
        table.times("a program", BARE, turns.times(BARE), ratio="1"),
    ]


async def _program(words: list[str]) -> list[float]:
    began = time.perf_counter()
    command = [sys.executable, *words]
    await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
    return [time.perf_counter() - began]
