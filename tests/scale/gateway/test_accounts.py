"""Accounts of all replicas: whichever counts a call or hears a yes, all others know."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.policy.approvals import Approval, Approvals
from divingbell.journal.journal import Journal
from divingbell.scale.gateway import link as gateway_link
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.settings.config import Settings
from divingbell.settings.policy import Policy
from tests.scale.gateway import hosts
from tests.waiting import until


@contextlib.asynccontextmanager
async def two_replicas(
    idle_timeout: float = 1800.0, **policy: Any
) -> AsyncIterator[tuple[hosts.Hosts, list[GatewayLink], list[SharedGateway]]]:
    settings = Settings(policy=Policy(**policy), idle_timeout=idle_timeout)
    async with (
        hosts.running(settings=settings) as found,
        hosts.linked(found) as one,
        hosts.linked(found) as two,
    ):
        shared = [SharedGateway(each, settings.policy) for each in (one, two)]
        for each in shared:
            await each.start()
        yield found, [one, two], shared


async def test_calls_of_all_replicas_count_against_one_budget() -> None:
    async with two_replicas(calls_per_session=3, calls_per_cell=2) as (_, _, (one, two)):
        await one.budgets.reserve("anne/a", "anne", 1)
        await two.budgets.reserve("anne/a", "anne", 1)
        with pytest.raises(ToolFailed, match="calls_per_cell") as refused:
            await one.budgets.reserve("anne/a", "anne", 1)
        assert refused.value.code == "tool_limit"
        await one.budgets.reserve("anne/a", "anne", 2)
        assert (one.budgets.used("anne/a"), two.budgets.used("anne/a")) == (3, 2)
        for each in (one, two):
            with pytest.raises(ToolFailed, match=r"all 3 calls are used \(calls_per_session"):
                await each.budgets.reserve("anne/a", "anne", 3)
        await two.budgets.reserve("bert/a", "bert", 1)


async def test_rates_are_one_for_all_replicas_too() -> None:
    async with two_replicas(rate_per_user="2/hour") as (_, _, (one, two)):
        await one.budgets.reserve("anne/a", "anne")
        await two.budgets.reserve("anne/b", "anne")
        for each in (one, two):
            with pytest.raises(ToolFailed, match="too many calls: 2 an hour"):
                await each.budgets.reserve("anne/c", "anne")


async def test_of_calls_at_once_at_both_replicas_none_slips_through() -> None:
    async with two_replicas(calls_per_user=10) as (_, _, both):
        calls = [both[number % 2].budgets.reserve("anne/a", "anne") for number in range(40)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(outcome is None for outcome in outcomes) == 10


async def test_of_a_large_budget_some_is_given_ahead_and_what_is_not_used_given_back() -> None:
    async with two_replicas(calls_per_session=1000) as (found, _, (one, two)):
        host = found.host
        assert host is not None
        for _ in range(6):
            await one.budgets.reserve("anne/a", "anne", 1)
        assert (host.accounts.used("anne/a"), one.budgets.used("anne/a")) == (16, 6)
        one.budgets.end_run("anne/a")
        await two.budgets.reserve("anne/a", "anne", 2)
        await two.budgets.reserve("anne/a", "anne", 3)  # the cell before is over
        assert two.budgets.used("anne/a") == 8
        await two.budgets.forget("anne/a")
        await until(lambda: host.accounts.used("anne/a") == 8, "what is not used is given back")
        await one.budgets.reserve("anne/a", "anne", 0)  # between cells each is asked for
        assert host.accounts.used("anne/a") == 9


async def test_what_one_gateway_gave_ahead_is_not_taken_from_the_next() -> None:
    async with two_replicas(calls_per_session=1000) as (found, _, (one, _)):
        await one.budgets.reserve("anne/a", "anne", 1)
        await found.stop()
        host = await found.start()
        await one.budgets.reserve("anne/a", "anne", 1)
        assert host.accounts.used("anne/a") == 16


async def test_however_calls_come_none_is_made_beyond_the_budget_and_each_counts_once() -> None:
    async def cell(shared: SharedGateway, session: str, number: int) -> int:
        made = 0

        async def one() -> None:
            nonlocal made
            with contextlib.suppress(ToolFailed):
                await shared.budgets.reserve(session, "anne", number)
                made += 1

        await asyncio.gather(*(one() for _ in range(12)))
        for _ in range(12):
            await one()
        shared.budgets.end_run(session)
        return made

    async def run(shared: SharedGateway, session: str) -> int:
        return sum([await cell(shared, session, number) for number in range(1, 6)])

    async with two_replicas(calls_per_user=700) as (found, _, both):
        host = found.host
        assert host is not None
        sessions = [(both[number % 2], f"anne/{number}") for number in range(4)]
        made = sum(await asyncio.gather(*(run(*each) for each in sessions)))
        assert made == 4 * 5 * 24
        made += sum(await asyncio.gather(*(run(*each) for each in sessions)))
        # Some may be ahead at another session when the last one is refused: then they go back.
        assert 700 - 4 * 15 <= made <= 700

        def counted() -> int:
            return sum(host.accounts.used(session) for _, session in sessions)

        await until(lambda: counted() == made, "what is not used is given back")


async def test_a_session_is_forgotten_when_no_replica_has_had_it_for_as_long_as_it_may_rest() -> (
    None
):
    async with two_replicas(idle_timeout=0.1, calls_per_session=1) as (found, links, (one, two)):
        host = found.host
        assert host is not None
        await one.budgets.reserve("anne/a", "anne")
        with pytest.raises(ToolFailed):
            await two.budgets.reserve("anne/a", "anne")
        await one.budgets.forget("anne/a")
        with pytest.raises(ToolFailed):  # the session goes on at the other
            await two.budgets.reserve("anne/a", "anne")
        assert len(host.accounts) == 1
        links[1].laid().lose("its machine was switched off")
        await until(lambda: not len(host.accounts), "it is forgotten")
        await one.budgets.reserve("anne/a", "anne")


async def test_without_the_gateway_no_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_link, "PATIENCE", 0.1)
    async with two_replicas() as (found, _, (one, _)):
        await found.stop()
        with pytest.raises(ToolFailed, match="so no call was made") as refused:
            await one.budgets.reserve("anne/a", "anne")
        assert refused.value.code == "tool_unavailable"
        with pytest.raises(ToolFailed, match="so no call was made"):
            await one.remembered.holds(("anne/a", "shop.buy", 1, (), "a digest"))


async def test_a_yes_for_a_session_holds_at_all_replicas_and_for_its_like_alone() -> None:
    asked: list[str] = []

    async def says_session(approval: Approval) -> str:
        asked.append(approval.key)
        return "session"

    async with two_replicas() as (_, _, shared):
        one, two = (Approvals(5.0, Journal(), each.remembered) for each in shared)
        buy = Approval("shop.buy", key="anne/a", rule=1, flows=(2,), definition="as it was")
        await one.ask(buy, says_session)
        assert (await two.ask(buy, None)).word == "always"
        assert asked == ["anne/a"]
        for other in (
            Approval("shop.buy", key="anne/b", rule=1, flows=(2,), definition="as it was"),
            Approval("shop.buy", key="anne/a", rule=1, flows=(2,), definition="another one"),
            Approval("shop.buy", key="anne/a", rule=1, flows=(), definition="as it was"),
        ):
            with pytest.raises(ToolFailed, match="needs approval"):
                await two.ask(other, None)


async def test_a_yes_to_one_call_is_remembered_nowhere() -> None:
    async def says_yes(approval: Approval) -> bool:
        return True

    async with two_replicas() as (_, _, shared):
        one, two = (Approvals(5.0, Journal(), each.remembered) for each in shared)
        buy = Approval("shop.buy", key="anne/a", run=1)
        await one.ask(buy, says_yes)
        with pytest.raises(ToolFailed, match="needs approval"):
            await two.ask(buy, None)
