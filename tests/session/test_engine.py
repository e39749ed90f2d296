"""Opening, sharing, capacity, idleness, the pool: what the library promises about sessions."""

import asyncio

import pytest

from divingbell import (
    CapacityError,
    ConfigError,
    Divingbell,
    DivingbellError,
    InvalidInput,
    SessionClosed,
)
from tests.waiting import PATIENCE, until


async def test_an_open_id_is_the_same_session_for_the_same_user(bell: Divingbell) -> None:
    async with bell.session("shared", user="a") as one:
        await one.run("x = 1")
        async with bell.session("shared", user="a") as other:
            assert other.key == one.key
            assert (await other.run("x")).value == 1
        # The inner block has left; the outer one still holds it.
        assert (await one.run("x")).value == 1
    with pytest.raises(SessionClosed):
        await one.run("x")


async def test_an_id_is_never_the_session_of_another_user(bell: Divingbell) -> None:
    async with (
        bell.session("same", user="a") as one,
        bell.session("same", user="b") as other,
        bell.session("same") as nobody,
    ):
        assert len({id(one), id(other), id(nobody)}) == 3
        await one.run("x = 1")
        assert (await other.run("'x' in globals()")).value is False


@pytest.mark.parametrize("name", [1, True, 1.0, 0, b"a", ("a",)])
async def test_users_and_ids_are_texts(bell: Divingbell, name: object) -> None:
    """To a dict 1, True and 1.0 are one key: three users would share a session."""
    with pytest.raises(InvalidInput, match="the user of a session must be a str or None, not"):
        await bell.open("same", user=name)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the id of a session must be a str or None, not"):
        await bell.open(name)  # type: ignore[arg-type]


async def test_after_its_end_an_id_is_a_new_session(bell: Divingbell) -> None:
    async with bell.session("again") as session:
        await session.run("x = 1")
    async with bell.session("again") as session:
        assert (await session.run("'x' in globals()")).value is False


async def test_opening_one_id_many_times_at_once_makes_one_session(bell: Divingbell) -> None:
    everybody = asyncio.Barrier(10)

    async def use() -> str:
        async with bell.session("crowd") as session, asyncio.timeout(PATIENCE):
            await everybody.wait()
            return session.key

    assert len(set(await asyncio.gather(*(use() for _ in range(10))))) == 1


async def test_letting_go_twice_does_not_end_the_session_of_another(bell: Divingbell) -> None:
    one, other = await bell.open("shared"), await bell.open("shared")
    assert one.key == other.key and one is not other
    await bell.release(one)
    await bell.release(one)
    assert not other.closed and (await other.run("1")).value == 1
    await bell.release(other)
    assert other.closed and one.closed


async def test_those_who_only_look_hold_nothing(bell: Divingbell) -> None:
    async with bell.session("looked at") as session:
        [seen] = [each for each in bell.sessions() if each.key == session.key]
        for looked_for in (seen, bell.get("looked at")):
            assert looked_for is not None
            with pytest.raises(InvalidInput, match=r"session\.close\(\)"):
                await bell.release(looked_for)
        assert not session.closed


async def test_ids_that_nobody_gave_cannot_be_guessed(bell: Divingbell) -> None:
    async with bell.session() as one, bell.session() as other:
        assert one.id != other.id
        assert len(one.id) >= 20


async def test_at_capacity_one_waits_and_then_is_told() -> None:
    async with Divingbell(max_sessions=2, open_timeout=0.2, pool=0) as bell:
        async with bell.session("a"), bell.session("b"):
            with pytest.raises(CapacityError, match="max_sessions"):
                async with bell.session("c"):
                    pass
            assert len(bell.sessions()) == 2
        async with bell.session("c") as session:
            assert (await session.run("1")).value == 1


async def test_a_place_that_becomes_free_is_taken() -> None:
    async with Divingbell(max_sessions=1, open_timeout=20, pool=0) as bell:

        async def use(number: int) -> int:
            async with bell.session() as session:
                value = (await session.run(f"{number} * 2")).value
                assert isinstance(value, int)
                return value

        assert await asyncio.gather(*(use(i) for i in range(5))) == [0, 2, 4, 6, 8]


async def test_an_idle_session_ends_and_says_why() -> None:
    async with Divingbell(idle_timeout=0.3, pool=0) as bell:
        async with bell.session("idle") as session:
            await session.run("1")
            await until(lambda: session.closed, "the session ends")
            with pytest.raises(SessionClosed, match="idle"):
                await session.run("1")
        async with bell.session("busy") as session:
            result = await session.run("import time; time.sleep(1); 'done'")
            assert result.value == "done"


async def test_sessions_with_other_limits_have_them(bell: Divingbell) -> None:
    async with bell.session(memory="1GB", disk="64MB", timeout=5) as session:
        assert session.limits.memory == 1 << 30
        code = "import os; s = os.statvfs('/workspace'); s.f_blocks * s.f_frsize"
        assert (await session.run(code)).value == 64 << 20


async def test_limits_that_make_no_sense_are_refused(bell: Divingbell) -> None:
    for limits in ({"memory": "lots"}, {"timeout": -1}, {"memroy": "1GB"}, {"disk": 0}):
        with pytest.raises(ConfigError):
            async with bell.session(**limits):
                pass


async def test_many_sessions_run_at_once_without_mixing(bell: Divingbell) -> None:
    async def use(number: int) -> None:
        async with bell.session() as session:
            for turn in range(5):
                code = f"for _ in range(100): print('{number}-{turn}')"
                result = await session.run(code)
                assert result.text == f"{number}-{turn}\n" * 100

    await asyncio.gather(*(use(i) for i in range(20)))


async def test_it_must_be_entered_first() -> None:
    with pytest.raises(DivingbellError, match="async with"):
        await Divingbell().execute("1")


async def test_closing_ends_every_session_and_the_pool() -> None:
    bell = Divingbell(pool=2)
    await bell.__aenter__()
    opened = bell.session("left open")
    session = await opened.__aenter__()
    await session.run("1")
    await bell.__aexit__(None, None, None)
    with pytest.raises(SessionClosed):
        await session.run("1")
    await opened.__aexit__(None, None, None)


async def test_one_divingbell_runs_once_at_a_time() -> None:
    bell = Divingbell(pool=0)
    async with bell:
        with pytest.raises(DivingbellError, match="running already"):
            await bell.__aenter__()
        assert (await bell.execute("1")).value == 1
    async with bell:
        assert (await bell.execute("2")).value == 2


async def test_nothing_is_loaded_that_preload_does_not_name() -> None:
    async with Divingbell(preload=(), pool=0) as bell, bell.session() as session:
        loaded = await session.run("import sys; {'pandas', 'matplotlib', 'numpy'} & {*sys.modules}")
    assert loaded.text == "set()\n", loaded.text
