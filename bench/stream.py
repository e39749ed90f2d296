"""A stream of openings: many sessions one after another, where two wait at the start."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import bells
import table
from peers import PANDAS, Fork, HastyKernel, Peer, Task, first_result
from speed import Times, rows

from divingbell import Divingbell

IN_A_ROW = "{} sessions in a row → pandas"
STEADY = "a session every 100 ms → pandas"
EVERY = 0.1
FEW = 5
"""Of those that take a second each, and that know no pool."""
FIRST = "divingbell, as it starts"
AGAIN = "divingbell, after as many within five minutes"


class Following(Peer):
    """Divingbell as it ships: the pool follows how often sessions are opened."""

    name = "divingbell"

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        async with bells.ring() as self.bell:
            await bells.pool_is_full(self.bell)
            yield

    bell: Divingbell

    async def first(self, task: Task) -> float:
        return await first_result(self.bell, task)


async def stream(count: int) -> list[table.Row]:
    """`count` sessions, each used and closed: one right after another, and one every 100 ms."""
    ours, others = Following(), [Fork(), HastyKernel()]
    missing = {peer.name: reason for peer in others if (reason := peer.missing())}
    present = [peer for peer in others if peer.name not in missing]
    async with AsyncExitStack() as stack:
        for peer in (ours, *present):
            await stack.enter_async_context(peer.ready())
        in_a_row: Times = {FIRST: await _stream(ours, count)}
        in_a_row |= {peer.name: await _stream(peer, _times(peer, count)) for peer in present}
        await bells.pool_is_full(ours.bell)
        in_a_row[AGAIN] = await _stream(ours, count)
        await bells.pool_is_full(ours.bell)
        steady: Times = {ours.name: await _stream(ours, count, EVERY)}
        steady |= {peer.name: await _stream(peer, _times(peer, count), EVERY) for peer in present}
    against = HastyKernel.name
    return [
        *rows(IN_A_ROW.format(count), in_a_row, missing, against, {}),
        *rows(STEADY, steady, missing, against, {}),
    ]


def _times(peer: Peer, count: int) -> int:
    return min(count, FEW) if isinstance(peer, HastyKernel) else count


async def _stream(peer: Peer, count: int, every: float = 0.0) -> list[float]:
    """Seconds to the first result of each; the next is asked for when it is time, or at once."""
    found = []
    for _ in range(count):
        due = time.monotonic() + every
        found.append(await peer.first(PANDAS))
        await asyncio.sleep(max(due - time.monotonic(), 0.0))
    return found
