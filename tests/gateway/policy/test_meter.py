"""Budgets and rates hold, whatever comes at once."""

import asyncio

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.policy.meter import Meter
from divingbell.settings.policy import Policy

PATIENCE = 30.0


async def refused(meter: Meter, session: str = "s", user: str = "u", cell: int = 0) -> str:
    with pytest.raises(ToolFailed) as caught:
        await meter.reserve(session, user, cell)
    assert caught.value.code == "tool_limit"
    return str(caught.value)


async def test_a_session_has_a_budget_that_others_do_not_share() -> None:
    meter = Meter(Policy(calls_per_session=2))
    await meter.reserve("s", "u")
    await meter.reserve("s", "u")
    assert "all 2 calls are used (calls_per_session in [policy])" in await refused(meter)
    await meter.reserve("other", "u")
    assert meter.used("s") == 2


async def test_a_new_cell_has_a_budget_of_its_own() -> None:
    meter = Meter(Policy(calls_per_cell=1))
    await meter.reserve("s", "u", 1)
    assert "calls_per_cell" in await refused(meter, cell=1)
    await meter.reserve("s", "u", 2)
    assert "calls_per_cell" in await refused(meter, cell=2)


async def test_a_user_has_a_budget_over_all_sessions() -> None:
    meter = Meter(Policy(calls_per_user=1))
    await meter.reserve("a", "u")
    assert "calls_per_user" in await refused(meter, "b")
    await meter.forget("a")
    assert "calls_per_user" in await refused(meter, "b")
    await meter.reserve("b", "someone else")


async def test_nothing_is_limited_by_0() -> None:
    meter = Meter(Policy(calls_per_session=0, calls_per_cell=0))
    for _ in range(100):
        await meter.reserve("s", "u")


@pytest.mark.parametrize("rate", ["", "1000/minute"])
async def test_of_many_calls_at_once_none_slips_through(rate: str) -> None:
    meter = Meter(Policy(calls_per_session=10, rate_per_session=rate))
    async with asyncio.timeout(PATIENCE):
        done = await asyncio.gather(
            *(meter.reserve("s", "u") for _ in range(100)), return_exceptions=True
        )
    assert sum(one is None for one in done) == 10


async def test_a_call_that_was_not_made_is_given_back() -> None:
    meter = Meter(Policy(calls_per_session=1, calls_per_cell=1, calls_per_user=1))
    await meter.reserve("s", "u", 3)
    meter.release("s", "u", 3)
    await meter.reserve("s", "u", 3)
    await refused(meter, cell=3)


async def test_a_session_that_has_ended_is_forgotten() -> None:
    meter = Meter(Policy(calls_per_session=1, rate_per_session="1/hour"))
    await meter.reserve("s", "u", 1)
    await refused(meter, cell=1)
    await meter.forget("s")
    await meter.reserve("s", "u", 1)


async def test_a_rate_says_when_there_is_room_again() -> None:
    meter = Meter(Policy(rate_per_session="2/hour"))
    await meter.reserve("s", "u")
    await meter.reserve("s", "u")
    said = await refused(meter)
    assert "2 an hour are allowed (rate_per_session in [policy])" in said
    assert "time.sleep(" in said
    assert meter.used("s") == 2
    await meter.reserve("other", "u")


async def test_a_rate_of_a_user_counts_all_sessions() -> None:
    meter = Meter(Policy(rate_per_user="10/second; 2/hour"))
    await meter.reserve("a", "u")
    await meter.reserve("b", "u")
    assert "rate_per_user" in await refused(meter, "c")
    await meter.reserve("c", "someone else")
