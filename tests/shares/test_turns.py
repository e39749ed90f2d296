"""Turns on the event loop: steps of calls are charged, take turns, and fail as ever."""

import asyncio

import pytest

from divingbell.shares import turns as turns_module
from divingbell.shares.running import MOMENT, Cells
from divingbell.shares.turns import Turns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as `Cells` sees it."""
    now = [1000.0]
    monkeypatch.setattr(turns_module.time, "monotonic", lambda: now[0])
    return now


async def test_each_step_of_a_coroutine_is_charged_and_nothing_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    charged: list[float] = []
    turns = Turns(object())
    charge = turns.charge
    monkeypatch.setattr(turns, "charge", lambda seconds: (charged.append(seconds), charge(seconds)))

    async def work() -> str:
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: sum(range(2_000_000)))
        return "done"

    assert await turns.take(work()) == "done"
    assert len(charged) == 3 and all(seconds >= 0 for seconds in charged)
    assert sum(charged) < 0.02  # of processor time, of this thread


async def test_what_is_charged_can_fail_and_be_cancelled_as_ever() -> None:
    seen: list[str] = []

    async def work(fails: bool) -> None:
        try:
            if fails:
                raise ValueError("it fails")
            await asyncio.Event().wait()
        finally:
            seen.append("left")

    async def run(fails: bool) -> None:
        await Turns(object()).take(work(fails))

    with pytest.raises(ValueError, match="it fails"):
        await run(True)
    task = asyncio.create_task(run(False))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["left", "left"]


async def test_however_many_wait_a_round_of_the_loop_does_a_few_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns_module, "UNNOTICED", 0.0)  # one step is enough
    monkeypatch.setattr(turns_module, "cells", Cells())  # those of other tests are none of ours
    turns = Turns(object())
    go = asyncio.Event()
    steps = 0

    async def work() -> None:
        nonlocal steps
        await go.wait()
        steps += 1

    async def run() -> None:
        await turns.take(work())

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(run())
        await asyncio.sleep(0)
        go.set()
        rounds = []
        while steps < 20:
            before = steps
            await asyncio.sleep(0)
            rounds.append(steps - before)
    assert max(rounds) == 1


async def test_who_waits_for_its_turn_can_be_cancelled() -> None:
    turns = Turns(object())
    go = asyncio.Event()
    seen: list[str] = []

    async def work() -> None:
        try:
            await go.wait()
            seen.append("went on")
        finally:
            seen.append("left")

    async def run() -> None:
        await turns.take(work())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    turns.not_before = asyncio.get_running_loop().time() + 1000
    go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["left"]


def test_who_runs_cells_beside_a_session_is_known_for_a_moment(clock: list[float]) -> None:
    cells = Cells()
    assert not cells.beside("mine")
    with cells.run("mine"):
        assert not cells.beside("mine") and cells.beside("other")
        with cells.run("other"):
            assert cells.beside("mine")
        assert cells.beside("mine")
    assert cells.beside("mine") and cells.beside("other")
    clock[0] += 2 * MOMENT
    assert not cells.beside("mine") and not cells.beside("other")
