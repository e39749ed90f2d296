"""What stays: sessions opened and closed one after another must leave nothing, and not slow."""

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import bells
import processes
import table
from peers import PLAIN

from divingbell import Divingbell

MEASURE = "soak"
EDGE = 100
AS_QUICK = 1.1
"""The last hundred may take this many times as long as the first: noise, not growth."""
WARM_UP = 5
SETTLE = 10.0

Inventory = dict[str, frozenset[str]]


def inventory() -> Inventory:
    """Everything that a session could leave behind, by name."""
    known = processes.children()
    return {
        "processes": frozenset(map(str, processes.family(os.getpid(), known)[1:])),
        "mounts": frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": frozenset(
            str(path) for path in Path("/sys/fs/cgroup").glob(f"**/divingbell-{os.getpid()}-*/*/")
        ),
        "descriptors": frozenset(os.listdir("/proc/self/fd")),
        "folders": frozenset(
            str(path)
            for above in (tempfile.gettempdir(), "/run/divingbell")
            for path in Path(above).glob("*divingbell*")
        ),
    }


def left_over(before: Inventory, after: Inventory) -> dict[str, int]:
    return {name: len(after[name] - before[name]) for name in before}


async def soak(count: int) -> list[table.Row]:
    """Open, use and close `count` sessions; compare the last with the first, and what is there."""
    empty = inventory()
    async with bells.ring(pool=0) as bell:
        for _ in range(WARM_UP):
            await _once(bell)
        before = inventory()
        taken, control = [], []
        for _ in range(count):
            taken.append(await _once(bell))
            control.append(_bare_process())
        living = await _settled(before)
    ended = await _settled(empty)
    edge = max(1, min(EDGE, count // 2))
    early, late = taken[:edge], taken[-edge:]
    raw = statistics.median(late) / statistics.median(early)
    machine = statistics.median(control[-edge:]) / statistics.median(control[:edge])
    slower = raw / machine
    subject = f"{count} sessions opened, used, closed"
    return [
        table.times(
            MEASURE,
            f"{subject}: the last {edge}",
            late,
            ratio=f"{slower:.2f} of the first {edge}: {raw:.2f}, the machine itself {machine:.2f}",
            target=table.at_most(slower, AS_QUICK, "×"),
        ),
        _left_row(f"{subject}: left behind", living, count),
        _left_row("the same, after Divingbell was closed", ended, count),
    ]


async def _once(bell: Divingbell) -> float:
    started = time.perf_counter()
    async with bell.session() as session:
        result = await session.run(PLAIN.cell)
        PLAIN.check(result.value)
    return time.perf_counter() - started


def _bare_process() -> float:
    """How quick the machine is at this moment: what others do on it slows all alike."""
    started = time.perf_counter()
    subprocess.run(["true"], check=True)
    return time.perf_counter() - started


async def _settled(before: Inventory) -> dict[str, int]:
    """What is left, given a moment: the kernel removes some things after it has said so."""
    deadline = time.monotonic() + SETTLE
    while True:
        left = left_over(before, inventory())
        if not any(left.values()) or time.monotonic() > deadline:
            return left
        await asyncio.sleep(0.1)


def _left_row(subject: str, left: dict[str, int], count: int) -> table.Row:
    words = ", ".join(f"{number} {name}" for name, number in left.items() if number)
    kinds = ", ".join(left)
    return table.Row(
        MEASURE,
        subject,
        words or "nothing",
        target="nothing: " + ("NOT met" if words else f"met ({kinds})"),
        runs=str(count),
    )
