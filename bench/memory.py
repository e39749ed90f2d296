"""How much: the memory of many sessions that live at once with pandas loaded."""

import asyncio
import statistics
from contextlib import AsyncExitStack

import bells
import processes
import table
from peers import PANDAS

MEASURE = "memory of a session"
ALONE = 8.0
WITH_COPY = 12.0
COPY_AFTER = 0.05
LOADED = "import pandas as pd, matplotlib.pyplot as plt"
_MB = 1 << 20


async def memory(count: int) -> list[table.Row]:
    """PSS of each of `count` sessions, with pandas imported and after its first result."""
    return [
        *await _measure(count, "pandas imported", LOADED, 0.0, 2, ALONE),
        *await _measure(count, "after a pandas result", PANDAS.cell, 0.0, 2, ALONE),
        *await _measure(count, "after it, with the copy", PANDAS.cell, COPY_AFTER, 3, WITH_COPY),
    ]


async def _measure(
    count: int, words: str, code: str, copy_after: float, members: int, target: float
) -> list[table.Row]:
    async with bells.ring(pool=0, copy_after=copy_after) as bell, AsyncExitStack() as stack:
        pids = []
        for _ in range(count):
            session = await stack.enter_async_context(bell.session())
            result = await session.run(code)
            assert result.status == "ok", result
            pids.append(bells.first_process(session))
        families = await _complete(pids, members)
        shares = [processes.proportional_memory(family) / _MB for family in families]
        tables = [processes.page_tables(family) / _MB for family in families]
    subject = f"{count} sessions, {words}"
    return [
        _row(subject + ": PSS", shares, table.at_most(statistics.median(shares), target, " MB")),
        _row(subject + ": page tables", tables, ""),
    ]


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
