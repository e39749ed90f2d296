"""Copies that wait: one at a time, in turn, never at the cost of cells, none without a change."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from divingbell import Divingbell, Session
from divingbell.session import copies
from divingbell.session.copies import Copy
from divingbell.shares import processors
from tests.session.test_pool import gives_way
from tests.waiting import until

SILENT = """
import sys
sys.modules["divingbell_inside.runner"]._runner._copy = lambda: None
"""
UNASKED = """
import sys
from divingbell_inside import frames
outlet = sys.modules["divingbell_inside.runner"]._runner._outlet
outlet.send(frames.pack({"event": "copied", "reason": None}))
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "REST", 0.0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Copy]:
    """The copies that are asked for, in order."""
    asked: list[Copy] = []
    make: Callable[[Copy], Awaitable[None]] = Copy.make

    async def making(copy: Copy) -> None:
        asked.append(copy)
        await make(copy)

    monkeypatch.setattr(Copy, "make", making)
    return asked


@asynccontextmanager
async def several(bell: Divingbell, count: int) -> AsyncIterator[list[Session]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(bell.session()) for _ in range(count)]


async def test_copies_are_made_one_at_a_time(
    bell: Divingbell, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, under_way, most = Copy.make, 0, 0

    async def counting(copy: Copy) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await make(copy)
        under_way -= 1

    monkeypatch.setattr(Copy, "make", counting)
    async with several(bell, 5) as sessions:
        await asyncio.gather(*(session.run("x = 1") for session in sessions))
        await until(lambda: all(session.copied_cell for session in sessions), "all have one")
    assert most == 1


def test_the_rest_is_many_times_as_long_as_the_copy_took_and_has_an_end() -> None:
    processor_time = 0.012 / (copies.rest_after(0.012) + 0.012)
    assert processor_time / processors.count() < 1 / 50
    assert copies.rest_after(0.006) < copies.rest_after(0.012)
    assert copies.rest_after(60.0) == copies.LONGEST_REST


async def test_whoever_has_waited_longest_is_next_though_it_has_run_cells_meanwhile(
    bell: Divingbell, quick: None, made: list[Copy], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with several(bell, 3) as (holding, first, second):
        monkeypatch.setattr(processors, "_running", lambda: 1000)
        running = asyncio.create_task(holding.run("while True: pass"))
        await until(lambda: holding.busy and holding.cells, "a cell needs the processor")
        for session in (first, second, first):
            await session.run("x = 1")
        await until(
            lambda: first._handle._copy.due < time.monotonic(), "it is idle for long enough"
        )
        assert made == []
        await holding.interrupt()
        await running
        await until(lambda: first.copied_cell and second.copied_cell, "both have one")
        order = [copy for copy in made if copy is not holding._handle._copy]
        assert order == [first._handle._copy, second._handle._copy]
        assert (first.copied_cell, second.copied_cell) == (2, 1)


async def test_no_copy_is_made_while_cells_need_the_processors(
    bell: Divingbell, made: list[Copy], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def crowded() -> int:
        looks.append(None)
        return 1000

    async with several(bell, 2) as (busy, idle):
        monkeypatch.setattr(processors, "_running", crowded)
        running = asyncio.create_task(busy.run("while True: pass"))
        await until(lambda: busy.busy and busy.cells, "a cell runs")
        await idle.run("x = 1")
        await until(lambda: len(looks) > 3, "somebody looks for a free processor")
        assert made == []
        await busy.interrupt()
        await running
        await until(lambda: idle.copied_cell == 1, "the copy")


@pytest.mark.parametrize("code", ["1 + 1", "x", "print(x)", "f'{x}'", "x +", "1 / 0"])
async def test_a_cell_that_only_reads_wants_no_copy(session: Session, code: str) -> None:
    changing = await session.run("x = [1]")
    await until(lambda: session.copied_cell == changing.cell, "a copy")
    await session.run(code)
    assert session._handle._copy.due is None
    result = await session.run("import os\nx.append(2)\nos._exit(1)")
    assert (result.state, result.state_cell) == ("rewound", changing.cell)
    assert any(f"after cell {changing.cell}" in note for note in result.notes)
    assert (await session.run("x")).value == [1]


@pytest.mark.parametrize("code", ["x.append(2)", "y = 1", "import json", "get_ipython()"])
async def test_a_cell_that_could_have_changed_something_wants_one(
    session: Session, code: str
) -> None:
    await session.run("x = [1]")
    await until(lambda: session.copied_cell == 1, "a copy")
    await session.run(code)
    await until(lambda: session.copied_cell == 2, "another copy")


async def test_a_context_changes_variables_whatever_the_code_does(session: Session) -> None:
    await session.run("1 + 1", context={"given": 5})
    await until(lambda: session.copied_cell == 1, "a copy")
    await session.run("import os; os._exit(1)")
    assert (await session.run("given")).value == 5


async def test_tasks_that_go_on_may_change_something_under_any_cell(session: Session) -> None:
    await session.run("import asyncio\nawait asyncio.sleep(0)")
    await until(lambda: session.copied_cell == 1, "a copy")
    await session.run("1 + 1")
    await until(lambda: session.copied_cell == 2, "another copy")


async def test_a_change_is_not_forgotten_over_cells_that_only_read(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "_running", lambda: 1000)
    async with several(bell, 2) as (holding, session):
        running = asyncio.create_task(holding.run("while True: pass"))
        await until(lambda: holding.busy and holding.cells, "a cell needs the processor")
        await session.run("x = 1")
        await session.run("x")
        await holding.interrupt()
        await running
        await until(lambda: session.copied_cell == 2, "the copy, of the last cell")


async def test_an_interpreter_that_does_not_answer_holds_nobody_up_and_is_not_asked_again(
    bell: Divingbell, quick: None, made: list[Copy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PATIENCE", 0.05)
    async with several(bell, 2) as (silent, other):
        assert (await silent.run(SILENT)).status == "ok"
        await until(lambda: made, "it is asked")
        monkeypatch.setattr(copies, "PATIENCE", 20.0)
        for number in range(3):
            await silent.run(f"x = {number}")
            await other.run("x = 1")
            await until(lambda: other.copied_cell == other.cells, "the other has its copy")
        assert made.count(silent._handle._copy) == 1
        assert silent.copied_cell is None


async def test_a_copy_that_nobody_asked_for_is_not_believed(forgetful: Divingbell) -> None:
    async with forgetful.session() as session:
        assert (await session.run(UNASKED)).status == "ok"
        assert session.copied_cell is None


@pytest.fixture(scope="module")
async def forgetful() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=(), copy_after=0) as bell:
        yield bell


async def test_an_interpreter_gives_way_while_it_is_copied_unless_a_cell_waits(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_way: list[bool] = []
    answered = Copy.answered

    def looking(copy: Copy, header: dict[str, object]) -> None:
        gave_way.append(gives_way(session._handle.sandbox))
        answered(copy, header)

    monkeypatch.setattr(Copy, "answered", looking)
    await session.run("x = 1")
    await until(lambda: session.copied_cell == 1, "a copy")
    assert gave_way == [True]
    await until(lambda: not gives_way(session._handle.sandbox), "it is like all others again")
    monkeypatch.setattr(copies, "PATIENCE", 60.0)
    await session.run(SILENT)
    await until(lambda: gives_way(session._handle.sandbox), "a copy is asked for")
    await session.run("x = 2")
    assert not gives_way(session._handle.sandbox)


async def test_a_session_that_ends_leaves_the_row(bell: Divingbell) -> None:
    async with bell.session() as session:
        await session.run("x = 1")
        copy = session._handle._copy
    assert copy not in copy._copies._wanted
