"""Sessions that wait: as many as are opened, within bounds, and never at the cost of cells."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.models import Limits
from divingbell.sandbox.base import Sandbox
from divingbell.session import pool as pool_module
from divingbell.session.pool import BURST, REMEMBERED, Demand, Pool
from divingbell.shares import processors
from tests.waiting import until


@asynccontextmanager
async def pooled(**settings: object) -> AsyncIterator[tuple[Divingbell, Pool]]:
    """A Divingbell whose pool is as full as it is at the start."""
    async with Divingbell(preload=(), **{"pool": 1, **settings}) as bell:  # type: ignore[arg-type]
        assert bell._engine is not None
        pool = bell._engine._pool
        await until(lambda: len(pool) == bell.settings.pool, "the pool is filled")
        yield bell, pool


async def opened(bell: Divingbell, count: int) -> None:
    """Open so many at once, use them and close them."""
    sessions = [await bell.open() for _ in range(count)]
    for session in sessions:
        assert (await session.run("1 + 1")).value == 2
        await bell.release(session)


def counted(bell: Divingbell, go: asyncio.Event | None = None) -> list[Sandbox]:
    """The sandboxes that are made from now on, when they may be."""
    assert bell._backend is not None
    create: Callable[[Limits], Awaitable[Sandbox]] = bell._backend.create
    made: list[Sandbox] = []

    async def creating(limits: Limits) -> Sandbox:
        if go is not None:
            await go.wait()
        made.append(await create(limits))
        return made[-1]

    bell._backend.create = creating  # type: ignore[method-assign]
    return made


async def test_as_many_wait_as_were_opened_at_once() -> None:
    async with pooled() as (bell, pool):
        await opened(bell, 6)
        await until(lambda: len(pool) == 6, "the pool follows")
        made = counted(bell)
        sessions = [await bell.open() for _ in range(6)]
        assert not [session for session in sessions if session._handle.sandbox in made]
        for session in sessions:
            await bell.release(session)


async def test_the_pool_shrinks_when_nobody_opens_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "LOOK_AGAIN", 0.05)
    async with pooled() as (bell, pool):
        await opened(bell, 4)
        await until(lambda: len(pool) == 4, "the pool follows")
        monkeypatch.setattr(pool_module, "REMEMBERED", 0.0)
        await until(lambda: len(pool) == 1, "it shrinks to what the settings say")


async def test_sessions_with_limits_of_their_own_are_no_demand() -> None:
    async with pooled() as (bell, pool):
        for _ in range(3):
            async with bell.session(memory="64MB"):
                pass
        assert (pool.wanted, len(pool)) == (1, 1)


async def test_limits_that_the_host_enforces_do_not_keep_a_session_from_the_pool() -> None:
    async with pooled(pool=2) as (bell, _):
        made = counted(bell)
        options = {"timeout": 9, "ceiling": 90, "cpu_seconds": 8, "output": "2KB"}
        async with bell.session(env={"A": "b"}, labels={"a": "b"}, **options) as session:  # type: ignore[arg-type]
            assert session._handle.sandbox not in made
            assert (session.limits.timeout, session.limits.output) == (9, 2048)
            assert session._handle.sandbox.limits == session.limits
            assert (await session.run("while True: pass", timeout=0.2)).status == "timeout"
            assert (await session.run("print('x' * 5000)")).limit == "output"
            assert (await session.run("import os; os.environ['A']")).value == "b"
        for walls in ({"memory": "64MB"}, {"cores": 0.5}, {"processes": 9}, {"open_files": 99}):
            async with bell.session(**walls) as session:  # type: ignore[arg-type]
                assert session._handle.sandbox in made
        async with bell.session(disk="9MB") as session:
            assert session._handle.sandbox in made


async def test_places_are_kept_free_of_sessions_that_nobody_could_open() -> None:
    async with pooled(max_sessions=4) as (bell, pool):
        await opened(bell, 4)
        assert pool.wanted == 4
        async with bell.session(), bell.session(), bell.session():
            assert pool.wanted == 1


async def test_no_more_wait_than_the_settings_allow() -> None:
    async with pooled(pool_most=3) as (bell, pool):
        await opened(bell, 5)
        assert pool.wanted == 3
    async with pooled(pool=2, pool_most=0) as (bell, pool):
        await opened(bell, 4)
        assert pool.wanted == 2


async def test_no_more_wait_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    each = 1 << 30
    monkeypatch.setattr(pool_module, "PART_OF_MEMORY", 1.0)
    monkeypatch.setattr(pool_module, "USUAL_MEMORY", each)
    async with pooled() as (bell, pool):
        monkeypatch.setattr(pool_module, "_available_memory", lambda: 3 * each + 1)
        await opened(bell, 5)
        assert pool.wanted == 3
        monkeypatch.setattr(pool_module, "_available_memory", lambda: 0)
        assert pool.wanted == 1  # what the settings say is there in any case


async def test_what_one_holds_that_waits_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "PART_OF_MEMORY", 1.0)
    monkeypatch.setattr(pool_module, "USUAL_MEMORY", 1)
    monkeypatch.setattr(pool_module, "_available_memory", lambda: 1 << 30)
    async with pooled() as (_, pool):
        if pool._waiting[0].sandbox.consumption().memory is None:
            pytest.skip("nobody counts memory here")
        assert pool._affordable() < 1 << 12  # none holds less than 256 KB


def test_available_memory_is_what_the_kernel_says() -> None:
    assert 0 < pool_module._available_memory() < 1 << 50


def test_demand_is_the_busiest_moment_that_is_remembered() -> None:
    demand = Demand(100)
    assert demand.busiest(0.0) == 0
    for second in (0.0, 1.0, 2.0):
        demand.note(second)
    assert demand.busiest(2.0) == 3
    demand.note(2.0 + BURST + 0.1)
    assert demand.busiest(20.0) == 3
    assert demand.busiest(2.0 + REMEMBERED + 0.1) == 1
    assert demand.busiest(20.0 + REMEMBERED) == 0


def test_a_flood_of_openings_is_remembered_in_little_memory() -> None:
    demand = Demand(50)
    for number in range(100_000):
        demand.note(number / 10_000)
    assert demand.busiest(10.0) == 50
    assert len(demand._opened) + len(demand._peaks) <= 51


async def test_the_pool_is_not_filled_while_cells_need_the_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def crowded() -> int:
        looks.append(None)
        return 1000

    async with pooled() as (bell, pool):
        monkeypatch.setattr(processors, "_running", crowded)
        made = counted(bell)
        async with bell.session() as session:
            running = asyncio.create_task(session.run("while True: pass"))
            await until(lambda: len(looks) > 3, "the pool looks for a free processor")
            assert (len(pool), len(made)) == (0, 0)
            await session.interrupt()
            await running
            await until(lambda: len(pool) == 1, "the pool is filled")


async def test_an_opening_takes_the_session_that_is_just_being_made() -> None:
    async with pooled() as (bell, pool):
        go = asyncio.Event()
        made = counted(bell, go)
        async with bell.session():
            await until(lambda: pool._making, "another is being made")
            opening = asyncio.create_task(bell.open())
            await until(lambda: pool._claim is not None, "somebody waits for it")
            go.set()
            session = await opening
            assert session._handle.sandbox is made[0]
            assert (await session.run("1 + 1")).value == 2
            await bell.release(session)


async def test_an_opening_that_is_cancelled_leaves_its_session_to_the_next() -> None:
    async with pooled(pool_most=0) as (bell, pool):
        go = asyncio.Event()
        made = counted(bell, go)
        async with bell.session():
            await until(lambda: pool._making, "another is being made")
            opening = asyncio.create_task(bell.open())
            await until(lambda: pool._claim is not None, "somebody waits for it")
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            go.set()
            await until(lambda: len(pool) == 1, "it waits for somebody else")
            assert (len(made), len(bell.sessions())) == (1, 1)
            async with bell.session() as session:
                assert session._handle.sandbox is made[0]
                assert (await session.run("1 + 1")).value == 2


async def test_a_session_that_died_while_it_waited_is_not_handed_out() -> None:
    async with pooled() as (bell, pool):
        dead = pool._waiting[0]
        await dead.sandbox.stop()
        await until(lambda: not dead.alive, "the host notices")
        async with bell.session() as session:
            assert session._handle.sandbox is not dead.sandbox
            assert (await session.run("1 + 1")).value == 2


async def test_trouble_with_making_one_is_met_again_by_the_next_opening() -> None:
    async with pooled() as (bell, pool):
        assert bell._backend is not None
        create = bell._backend.create
        failures = []

        async def failing(limits: Limits) -> Sandbox:
            failures.append(limits)
            raise OSError("no more of it")

        bell._backend.create = failing  # type: ignore[method-assign]
        async with bell.session():
            await until(lambda: failures, "the pool tries to make another")
            bell._backend.create = create  # type: ignore[method-assign]
            assert len(pool) == 0
            async with bell.session():
                await until(lambda: len(pool) >= 1, "the pool is filled")


def gives_way(sandbox: Sandbox) -> bool:
    """Whether all others have the processor first, as the kernel sees it."""
    group = getattr(sandbox, "_group", None)
    folder = getattr(group, "_folders", {}).get("cpu") or getattr(group, "_folder", None)
    file = Path(folder) / "cpu.idle" if folder else None
    if file is None or not file.exists():
        pytest.skip("no control group here can give way")
    return file.read_text().strip() == "1"


async def test_who_waits_gives_way_and_who_was_taken_does_not() -> None:
    async with pooled() as (bell, pool):
        waiting = pool._waiting[0].sandbox
        assert gives_way(waiting)
        async with bell.session() as session:
            assert session._handle.sandbox is waiting
            assert not gives_way(waiting)
