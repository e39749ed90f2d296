"""How much: the memory of many sessions that live at once with pandas loaded."""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

import bells
import processes
import table
from kdamond import Kdamond
from peers import PANDAS

from divingbell.session import copies

MEASURE = "memory of a session"
OPENING = "opening beside many"
ALONE = 8.0
WITH_COPY = 12.0
COPY_AFTER = 0.05
EDGE = 20
"""Sessions opened first, and last, whose times are compared."""
LOADED = "import pandas as pd, matplotlib.pyplot as plt"
_MB = 1 << 20


async def memory(count: int) -> list[table.Row]:
    """PSS of each of `count` sessions, with pandas imported and after its first result."""
    loaded, _ = await _measure(count, "pandas imported", LOADED, 0.0, 2, ALONE)
    used, opening = await _measure(count, "after a pandas result", PANDAS.cell, 0.0, 2, ALONE)
    copied, _ = await _with_copies(count)
    return [*loaded, *used, *copied, *opening]


async def _with_copies(count: int) -> tuple[list[table.Row], list[table.Row]]:
    rest, copies.REST = copies.REST, 0.0  # hundreds of copies would take minutes
    try:
        return await _measure(
            count, "after it, with the copy", PANDAS.cell, COPY_AFTER, 3, WITH_COPY
        )
    finally:
        copies.REST = rest


async def _measure(
    count: int, words: str, code: str, copy_after: float, members: int, target: float
) -> tuple[list[table.Row], list[table.Row]]:
    """Rows for their memory, and for how they were opened."""
    async with bells.ring(pool=0, copy_after=copy_after) as bell, AsyncExitStack() as stack:
        pids, taken, kdamond = [], [], Kdamond()
        for _ in range(count):
            started = time.perf_counter()
            session = await stack.enter_async_context(bell.session())
            result = await session.run(code)
            taken.append(time.perf_counter() - started)
            assert result.status == "ok", result
            pids.append(bells.first_process(session))
        watched = kdamond.words()
        families = await _complete(pids, members)
        shares = [processes.proportional_memory(family) / _MB for family in families]
        tables = [processes.page_tables(family) / _MB for family in families]
    subject = f"{count} sessions, {words}"
    aim = table.at_most(statistics.median(shares), target, " MB")
    rows = [_row(subject + ": PSS", shares, aim), _row(subject + ": page tables", tables, "")]
    return rows, [_opening_row(taken), table.Row(OPENING, "kdamond meanwhile", watched)]


def _opening_row(taken: list[float]) -> table.Row:
    """On demand, each with its first result: the last ones, against the first."""
    edge = max(1, min(EDGE, len(taken) // 2))
    early, late = taken[:edge], taken[-edge:]
    slower = statistics.median(late) / statistics.median(early)
    words = f"{slower:.2f} of the first {edge}"
    return table.times(OPENING, f"the last {edge} of {len(taken)}, on demand", late, ratio=words)


async def _complete(pids: list[int], members: int) -> list[list[int]]:
    """The processes of every session, once each has as many as it should have."""
    async with asyncio.timeout(bells.PATIENCE):
        while True:
            known = processes.children()
            families = [processes.family(pid, known) for pid in pids]
            if all(len(family) == members for family in families):
                return families
            await asyncio.sleep(0.1)


def _row(subject: str, values: list[float], target: str) -> table.Row:
    return table.Row(
        MEASURE,
        subject,
        f"{statistics.median(values):.2f} MB",
        target=target,
        spread=f"{min(values):.2f} – {max(values):.2f} MB (all)",
        runs=str(len(values)),
    )
