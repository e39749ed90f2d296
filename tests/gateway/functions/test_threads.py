"""Threads for functions: a bounded number, a share for each session, and no trace left behind."""

import asyncio
import contextvars
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from divingbell import ToolFailed
from divingbell.gateway.functions import threads
from divingbell.gateway.functions.threads import MOST, MOST_OF_A_SESSION, Threads
from tests.waiting import PATIENCE, until


@pytest.fixture
async def pool() -> AsyncIterator[Threads]:
    made = Threads()
    yield made
    made.stop()
    await until(lambda: not _ours(), "the threads end")


def _ours() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "divingbell-function"]


async def run(pool: Threads, work: Callable[[], Any], session: str = "a") -> Any:
    running = await pool.begin(session, work, lambda _: None)
    async with asyncio.timeout(PATIENCE):
        return await running


async def test_one_session_leaves_threads_for_the_others(
    pool: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    try:
        for _ in range(MOST_OF_A_SESSION):
            await pool.begin("a", released.wait, lambda _: None)
        monkeypatch.setattr(threads, "PATIENCE", 0.05)
        with pytest.raises(ToolFailed, match=r"no thread became free.*16 calls") as failed:
            await run(pool, lambda: 1)
        assert failed.value.code == "tool_limit"
        assert await run(pool, lambda: 1, "b") == 1
    finally:
        released.set()
    monkeypatch.undo()
    assert await run(pool, lambda: 2) == 2  # and they are free again


async def test_there_are_never_more_than_the_most(
    pool: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    try:
        for number in range(MOST):
            await pool.begin(f"session {number}", released.wait, lambda _: None)
        assert len(_ours()) == MOST and all(each.daemon for each in _ours())
        monkeypatch.setattr(threads, "PATIENCE", 0.05)
        with pytest.raises(ToolFailed, match="no thread became free"):
            await run(pool, lambda: 1, "another")
        assert len(_ours()) == MOST
    finally:
        released.set()


async def test_a_thread_is_used_again(pool: Threads) -> None:
    for number in range(20):
        assert await run(pool, lambda number=number: number) == number
    assert len(_ours()) == 1


async def test_a_call_that_nobody_waits_for_gives_its_place_back_when_it_ends(
    pool: Threads,
) -> None:
    released, charged = threading.Event(), list[float]()
    running = await pool.begin("a", released.wait, charged.append)
    running.cancel()
    assert pool._busy == 1
    released.set()
    await until(lambda: not pool._busy, "the place is free again")
    assert len(charged) == 1


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable")


async def test_context_variables_are_carried_over(pool: Threads) -> None:
    VARIABLE.set("of this task")
    assert await run(pool, VARIABLE.get) == "of this task"


async def test_processor_time_is_charged(pool: Threads) -> None:
    charged: list[float] = []
    await (await pool.begin("a", lambda: sum(range(200_000)), charged.append))
    assert len(charged) == 1 and charged[0] > 0


async def test_whatever_is_raised_comes_out_and_costs_no_thread(pool: Threads) -> None:
    with pytest.raises(SystemExit):
        await run(pool, sys.exit)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run(pool, lambda: next(iter(())))
    assert await run(pool, lambda: 1) == 1
    assert len(_ours()) == 1
