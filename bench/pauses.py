"""People who pause: many sessions with a small cell every second. What do the copies cost?"""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

import bells
import table

from divingbell import Session

MEASURE = "pauses"
CELL = "seen = globals().get('seen', 0) + 1\nseen"
PAUSE = 1.0
COPIES = 1 / 3
"""The part of all processor time that copies may take."""
SETTLE = 1.0


async def pauses(count: int, seconds: float) -> list[table.Row]:
    """The processor time of a cell, the host's part included, without copies and with them."""
    alone, times = await _measure(count, seconds, 0.0)
    copied, times_copied = await _measure(count, seconds, None)
    share = 1 - alone / copied
    subject = f"{count} sessions, a small cell a second each, for {seconds:g} s"
    return [
        table.Row(
            MEASURE,
            f"{subject}: processor time of a cell, without copies",
            table.seconds(alone),
            runs=str(len(times)),
        ),
        table.Row(
            MEASURE,
            f"{subject}: the same, with copies",
            table.seconds(copied),
            ratio=f"copies take {share * 100:.0f} % of it",
            target=table.at_most(share * 100, round(COPIES * 100), " %"),
            runs=str(len(times_copied)),
        ),
        table.times(MEASURE, f"{subject}: how long a cell takes, without copies", times),
        table.times(
            MEASURE,
            f"{subject}: how long a cell takes, with copies",
            times_copied,
            ratio=f"{statistics.median(times_copied) / statistics.median(times):.2f}×",
        ),
    ]


async def _measure(
    count: int, seconds: float, copy_after: float | None
) -> tuple[float, list[float]]:
    """Processor seconds of a cell, and how long each took; `copy_after` None is the default."""
    settings = {} if copy_after is None else {"copy_after": copy_after}
    async with bells.ring(pool=0, **settings) as bell, AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(bell.session()) for _ in range(count)]
        for session in sessions:
            await session.run(CELL)
        await asyncio.sleep(SETTLE)
        before = _processor_time(sessions)
        until = time.monotonic() + seconds
        people = [
            _person(session, number * PAUSE / count, until)
            for number, session in enumerate(sessions)
        ]
        taken = [one for each in await asyncio.gather(*people) for one in each]
        return (_processor_time(sessions) - before) / len(taken), taken


async def _person(session: Session, late: float, until: float) -> list[float]:
    await asyncio.sleep(late)
    taken = []
    while time.monotonic() < until or not taken:
        started = time.perf_counter()
        result = await session.run(CELL)
        taken.append(time.perf_counter() - started)
        assert result.status == "ok", result
        await asyncio.sleep(PAUSE)
    return taken


def _processor_time(sessions: list[Session]) -> float:
    """Of this process, and of all that was ever run in the sessions."""
    inside = sum(session._handle.sandbox.consumption().cpu_seconds for session in sessions)
    return time.process_time() + inside
