"""All at once: many sessions running cells at the same time, each with a marker of its own."""

import asyncio
import secrets
import time
from collections import Counter
from contextlib import AsyncExitStack

import bells
import table

from divingbell import Result, Session

MEASURE = "crowd"
CELL = """
import sys
for number in range(lines):
    print(marker, "out", number)
    print(marker, "err", number, file=sys.stderr)
seen = globals().get("seen", 0) + 1
[marker, seen]
"""
LINES = 3


async def crowd(count: int, seconds: float) -> list[table.Row]:
    """Run `count` sessions at once for so many seconds; every answer is checked."""
    tally: Counter[str] = Counter()
    taken: list[float] = []
    async with bells.ring(pool=0) as bell, AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(bell.session()) for _ in range(count)]
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(_keep_running(session, until, tally, taken))
    subject = f"{count} sessions at once for {seconds:g} s"
    bad = tally["errors"] + tally["mixed up"]
    return [
        table.times(MEASURE, f"{subject}: a cell that prints six lines", taken),
        table.Row(
            MEASURE,
            f"{subject}: errors, mixed-up outputs",
            f"{tally['errors']}, {tally['mixed up']}",
            ratio=f"{tally['cells'] / seconds:.0f} cells a second",
            target="none: " + ("NOT met" if bad or not tally["cells"] else "met"),
            runs=str(tally["cells"]),
        ),
    ]


async def _keep_running(
    session: Session, until: float, tally: Counter[str], taken: list[float]
) -> None:
    marker = secrets.token_hex(8)
    context = {"marker": marker, "lines": LINES}
    number = 0
    while time.monotonic() < until or not number:
        number += 1
        started = time.perf_counter()
        result = await session.run(CELL, context=context)
        taken.append(time.perf_counter() - started)
        tally["cells"] += 1
        if result.status != "ok":
            tally["errors"] += 1
        elif not _is_own(result, marker, number):
            tally["mixed up"] += 1


def _is_own(result: Result, marker: str, number: int) -> bool:
    texts = {"stdout": "", "stderr": ""}
    for output in result.outputs:
        if output.name in texts:
            texts[output.name] += str(output.data)
    return (
        result.value == [marker, number]
        and texts["stdout"] == _lines(marker, "out")
        and texts["stderr"] == _lines(marker, "err")
    )


def _lines(marker: str, name: str) -> str:
    return "".join(f"{marker} {name} {number}\n" for number in range(LINES))
