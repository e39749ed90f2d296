"""A processor is free for what nobody waits for, or it is a cell's."""

import asyncio

import pytest

from divingbell.shares import processors
from divingbell.shares.running import cells


def test_without_cells_the_load_of_others_keeps_nobody_from_working(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processors, "_running", lambda: 1000)
    assert processors.one_is_free()


def test_beside_a_cell_work_waits_until_a_processor_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cells.run("a session"):
        monkeypatch.setattr(processors, "_running", lambda: processors.count())
        assert processors.one_is_free()
        monkeypatch.setattr(processors, "_running", lambda: processors.count() + 1)
        assert not processors.one_is_free()
    assert processors.one_is_free()


def test_whoever_asks_runs_himself() -> None:
    assert processors._running() >= 1


async def test_waiting_ends_with_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "_running", lambda: 1000)
    with cells.run("a session"):
        waiting = asyncio.create_task(processors.until_one_is_free())
        await asyncio.sleep(0)
        assert not waiting.done()
    async with asyncio.timeout(20):
        await waiting
