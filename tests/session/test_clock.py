"""The clock of a cell: it runs, it stands still during calls, and it can't be cheated."""

import asyncio

import pytest

from divingbell.session.clock import BRIEF, Clock


class Watched:
    """A clock whose session's processor time the test decides."""

    def __init__(self, timeout: float, ceiling: float) -> None:
        self.cpu = 0.0
        self.rang = asyncio.Event()
        self.hit = asyncio.Event()
        self.clock = Clock(timeout, ceiling, lambda: self.cpu, self.rang.set, self.hit.set)


async def test_it_rings_when_the_time_is_over() -> None:
    watched = Watched(0.05, 60)
    async with asyncio.timeout(10):
        await watched.rang.wait()
    assert not watched.hit.is_set()
    watched.clock.stop()


async def test_it_stands_still_while_a_call_is_under_way() -> None:
    watched = Watched(0.1, 60)
    watched.clock.call_began()
    watched.clock.call_began()
    await asyncio.sleep(0.4)
    watched.clock.call_ended()
    assert not watched.rang.is_set()
    watched.clock.call_ended()
    async with asyncio.timeout(10):
        await watched.rang.wait()
    watched.clock.stop()


async def test_what_is_computed_behind_a_call_counts() -> None:
    watched = Watched(0.2, 60)
    watched.clock.call_began()
    await asyncio.sleep(BRIEF * 4)
    watched.cpu = 1.0
    async with asyncio.timeout(10):
        await watched.rang.wait()
    watched.clock.stop()


async def test_the_ceiling_holds_whatever_is_awaited() -> None:
    watched = Watched(0.05, 0.2)
    watched.clock.call_began()
    async with asyncio.timeout(10):
        await watched.hit.wait()
    assert not watched.rang.is_set()
    watched.clock.stop()


@pytest.mark.parametrize("calls", [0, 1])
async def test_a_stopped_clock_is_silent(calls: int) -> None:
    watched = Watched(0.02, 0.03)
    for _ in range(calls):
        watched.clock.call_began()
    watched.clock.stop()
    await asyncio.sleep(0.1)
    assert not watched.rang.is_set() and not watched.hit.is_set()
