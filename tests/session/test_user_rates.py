"""Executions and CPU seconds of a user have a rate, over all sessions and all ways in."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from divingbell import Divingbell, RateExceeded
from divingbell.errors import InvalidInput
from divingbell.events import CellStarted, CommandStarted, ExecutionRefused, JournalEvent
from divingbell.session.user_rates import UserRates
from divingbell.settings.policy import Policy
from tests.waiting import until

SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"
IN_THE_BACKGROUND = "import threading\ndef spin():\n    while True: pass\n"


class Time:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 5_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(**policy: str) -> AsyncIterator[tuple[Divingbell, Time, list[JournalEvent]]]:
    heard: list[JournalEvent] = []
    time = Time()
    async with Divingbell(pool=1, preload=(), policy=policy, on_event=heard.append) as bell:
        assert bell._engine is not None
        bell._engine._services.rates.clock = time
        yield bell, time, heard


def of(heard: list[JournalEvent], *kinds: type[Any]) -> list[Any]:
    return [event for event in heard if isinstance(event, kinds)]


def refused(rates: UserRates, user: str = "ada") -> RateExceeded:
    with pytest.raises(RateExceeded) as caught:
        rates.admit(user)
    return caught.value


def test_it_says_when_and_it_is_so_then_and_not_before() -> None:
    time = Time()
    rates = UserRates(Policy(execution_rate_per_user="2/minute"), time)
    rates.admit("ada")
    rates.admit("ada")
    error = refused(rates)
    assert error.code == "rate_exceeded" and math.isclose(error.retry_after, 30)
    assert str(error).endswith("again in 30 s") and "execution_rate_per_user" in str(error)
    rates.admit("bob")
    time.now += 29
    assert str(refused(rates)).endswith("again in 1 s")
    time.now += 1
    rates.admit("ada")
    assert str(refused(rates)).endswith("again in 30 s")


def test_of_several_rates_the_longest_wait_is_said_and_none_is_counted_for_a_refusal() -> None:
    time = Time()
    rates = UserRates(Policy(execution_rate_per_user="1/second; 2/hour"), time)
    rates.admit("ada")
    assert str(refused(rates)).endswith("again in 1 s")
    time.now += 1
    rates.admit("ada")
    for _ in range(100):
        refused(rates)
    error = refused(rates)
    assert "2 an hour" in str(error)
    time.now += error.retry_after
    rates.admit("ada")


def test_cpu_seconds_that_are_owed_are_waited_for() -> None:
    time = Time()
    rates = UserRates(Policy(cpu_rate_per_user="10/minute"), time)
    rates.use_cpu("ada", 9.9)
    rates.admit("ada")
    rates.use_cpu("ada", 5.1)  # what ran went on
    error = refused(rates)
    assert math.isclose(error.retry_after, 30) and str(error).endswith("again in 30 s")
    assert "cpu_rate_per_user" in str(error)
    rates.admit("bob")
    time.now += 29
    assert str(refused(rates)).endswith("again in 1 s")
    time.now += 1
    rates.use_cpu("ada", 0.01)  # which a session takes that does nothing
    rates.admit("ada")


def test_without_rates_nothing_is_counted() -> None:
    rates = UserRates(Policy())
    for _ in range(1_000):
        rates.admit("ada")
    assert not rates.counts_cpu and not rates.is_overdrawn("ada")


async def test_every_way_to_run_something_counts_and_no_new_session_starts_anew() -> None:
    async with opened(execution_rate_per_user="6/minute") as (bell, time, heard):
        async with bell.session("one", user="ada") as session:
            assert (await session.run("1 + 1")).value == 2
            async for _ in session.stream("2"):
                pass
            assert (await session.command("true")).status == "ok"
            async for _ in session.command_stream("true"):
                pass
            handle = await session.command("true", background=True)
            await handle.wait()
            assert (await bell.execute("3", user="ada")).value == 3
            ways: list[Any] = [
                session.run("4"),
                session.command("true"),
                session.command("true", background=True),
                anext(session.stream("4")),
                anext(session.command_stream("true")),
                bell.execute("4", user="ada"),
            ]
            for way in ways:
                with pytest.raises(RateExceeded, match=r"again in 10 s$"):
                    await way
            assert session.cells == 2
        for identifier in ("one", "another", None):
            async with bell.session(identifier, user="ada") as session:
                with pytest.raises(RateExceeded) as caught:
                    await session.run("4")
                async with bell.session(identifier, user="bob") as other:
                    assert (await other.run("5")).value == 5
        time.now += caught.value.retry_after
        async with bell.session("one", user="ada") as session:
            assert (await session.run("6")).value == 6
    told = of(heard, ExecutionRefused)
    assert [event.kind for event in told].count("command") == 3 and len(told) == 9
    assert {event.principal.user for event in told} == {"ada"}
    assert all(event.reason.endswith("again in 10 s") for event in told)
    assert len(of(heard, CellStarted, CommandStarted)) == 6 + 3 + 1


async def test_of_many_at_once_none_slips_through() -> None:
    async with opened(execution_rate_per_user="5/hour") as (bell, _, heard):
        async with bell.session(user="ada") as one, bell.session(user="ada") as two:
            runs = [session.run("1") for session in (one, two) for _ in range(10)]
            outcomes = await asyncio.gather(*runs, return_exceptions=True)
        assert sum(isinstance(each, RateExceeded) for each in outcomes) == 15
    assert len(of(heard, CellStarted)) == 5 and len(of(heard, ExecutionRefused)) == 15


async def test_cpu_seconds_of_cells_children_and_commands_count_and_what_runs_goes_on() -> None:
    shell = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', code]).returncode"
    async with opened(cpu_rate_per_user="1/minute") as (bell, time, _):
        async with bell.session(user="ada") as session:
            result = await session.run(SPIN.format(1.5))
            assert result.status == "ok"  # it has gone on past the budget
            with pytest.raises(RateExceeded) as caught:
                await session.run("1")
            assert caught.value.retry_after > 25
            time.now += caught.value.retry_after
            given = {"code": SPIN.format(1.5)}
            assert (await session.run(shell, context=given)).value == 0
            with pytest.raises(RateExceeded) as caught:
                await session.command("true")
            time.now += caught.value.retry_after
            done = await session.command(["python", "-c", SPIN.format(1.5)])
            assert done.status == "ok", done
        async with bell.session(user="ada") as again:
            with pytest.raises(RateExceeded):
                await again.run("1")
            async with bell.session(user="bob") as other:
                assert (await other.run("1")).value == 1


async def test_a_session_that_ends_in_the_middle_is_charged_for() -> None:
    async with opened(cpu_rate_per_user="1/hour") as (bell, _, _):
        for _ in range(2):
            async with bell.session(user="ada") as session:
                await session.run(IN_THE_BACKGROUND + SPIN.format(0.7))
        async with bell.session(user="ada") as session:
            with pytest.raises(RateExceeded):
                await session.run("1")


async def test_what_runs_in_the_background_is_charged_and_ended_when_a_budget_is_owed() -> None:
    async with (
        opened(cpu_rate_per_user="1/hour") as (bell, *_),
        bell.session(user="ada") as session,
        bell.session(user="bob") as other,
    ):
        kept = await other.command("sleep 60", background=True)
        spinning = await session.command("while :; do :; done", background=True)
        async with asyncio.timeout(60):
            ended = await spinning.wait()
        assert (ended.status, ended.limit) == ("limit", "cpu")
        assert ended.error is not None and "cpu_rate_per_user" in ended.error.message
        assert kept.running
        with pytest.raises(RateExceeded):
            await session.run("1")


async def test_what_a_cell_has_left_running_is_ended_when_a_budget_is_owed() -> None:
    async with (
        opened(cpu_rate_per_user="1/hour") as (bell, time, _),
        bell.session(user="ada") as session,
    ):
        handle: Any = session._handle
        await session.run(f"{IN_THE_BACKGROUND}threading.Thread(target=spin).start()")
        first = handle.sandbox.pids()
        await until(lambda: handle._ending is not None, "what was left behind is ended")
        await until(lambda: handle._ending is None, "an interpreter is put in place")
        time.now += 3_600 * 60
        result = await session.run("threading.active_count()")
        assert any("cpu_rate_per_user" in note for note in result.notes), (result, first)


async def test_a_wrong_rate_is_said_when_it_is_set() -> None:
    with pytest.raises(Exception, match='such as "60/minute"'):
        Divingbell(policy={"cpu_rate_per_user": "60"})


async def test_input_that_can_not_be_used_is_still_said_to_be() -> None:
    async with (
        opened(execution_rate_per_user="1/hour") as (bell, _, _),
        bell.session(user="ada") as session,
    ):
        with pytest.raises(InvalidInput):
            await session.run(1)  # type: ignore[arg-type]
        assert (await session.run("1")).value == 1


async def test_who_owes_cpu_seconds_can_not_have_values_looked_at_either() -> None:
    lazy = (
        "class Lazy:\n"
        "    def __len__(self):\n"
        f"        {SPIN.format(1.5).replace(chr(10), chr(10) + '        ')}\n"
        "        return 1\n"
        "lazy = Lazy()"
    )
    async with opened(cpu_rate_per_user="1/minute") as (bell, _, _), bell.session() as session:
        assert (await session.run(lazy)).status == "ok"
        assert (await session.run(SPIN.format(1.5))).status == "ok"
        for look in (session.variables(), session.complete("laz", 3), session.get("lazy")):
            with pytest.raises(RateExceeded):
                await look
        with pytest.raises(RateExceeded):
            await session.set("x", 1)
