"""Labels of conversations at several replicas: each knows what was read through any other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.context import CallContext, Holder
from divingbell.gateway.policy.labels import Labels, Source
from divingbell.principal import Principal
from divingbell.scale.gateway import common_labels
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.settings.config import Settings
from divingbell.settings.flows import Flow
from divingbell.settings.policy import Policy
from tests.scale.gateway import hosts
from tests.waiting import until

RULES = Policy(flow=(Flow(("crm.*",), ("mail.*",), "deny"),))
ANNE = Principal("anne", "connection-1", "http")
CRM = Source("crm.read", 3)


@contextlib.asynccontextmanager
async def replica(found: hosts.Hosts) -> AsyncIterator[tuple[GatewayLink, Labels]]:
    async with hosts.linked(found) as link:
        shared = SharedGateway(link, RULES)
        await shared.start()
        yield link, shared.labels


@contextlib.asynccontextmanager
async def two_replicas(
    idle_timeout: float = 1800.0,
) -> AsyncIterator[tuple[hosts.Hosts, tuple[GatewayLink, Labels], tuple[GatewayLink, Labels]]]:
    settings = Settings(policy=RULES, idle_timeout=idle_timeout)
    async with (
        hosts.running(settings=settings) as found,
        replica(found) as one,
        replica(found) as two,
    ):
        yield found, one, two


def held_back(labels: Labels, holder: Holder) -> str:
    """The call because of which mail is held back; empty where it is not."""
    if isinstance(holder, Principal):
        context = CallContext(holder, "a", "none", by="client")
    else:
        context = CallContext(ANNE, "a", holder)
    return "".join(str(match.source) for match in labels.matches(context, "mail.send"))


async def test_a_label_is_known_at_all_replicas_before_its_call_leaves() -> None:
    async with two_replicas() as (found, (_, one), (_, two)):
        one.add("anne/a#1", "anne", CRM)
        await one.settled("anne")
        assert held_back(two, "anne/a#1") == held_back(one, "anne/a#1") == str(CRM)
        assert not held_back(two, "anne/b#2")
        async with replica(found) as (_, three):  # one that comes later
            assert held_back(three, "anne/a#1") == str(CRM)
        one.forget("anne/a#1")  # it has let the session go, which may go on at another
        assert held_back(one, "anne/a#1") == held_back(two, "anne/a#1") == str(CRM)


async def test_a_client_and_its_sessions_are_one_conversation_at_all_replicas() -> None:
    async with two_replicas() as (_, (_, one), (_, two)):
        one.add("anne/a#1", "anne", CRM)
        one.join(ANNE, "anne/a#1")
        await one.settled("anne")
        assert held_back(two, ANNE) == str(CRM)
        two.join(ANNE, "anne/b#2")
        await two.settled("anne")
        assert held_back(one, "anne/b#2") == str(CRM)
        two.leave(ANNE.conversation)
        await two.settled("")
        assert not held_back(one, ANNE) and not held_back(two, ANNE)
        assert held_back(one, "anne/b#2") == str(CRM)


async def test_a_gateway_that_starts_anew_is_told_by_its_replicas() -> None:
    async with two_replicas() as (found, (_, one), (_, two)):
        one.add("anne/a#1", "anne", CRM)
        await one.settled("anne")
        await found.stop()
        two.add("anne/b#2", "anne", CRM)  # nobody can be told, so nothing leaves
        with pytest.raises(ToolFailed, match="so no call was made"):
            await two.settled("anne")
        await found.start()
        async with replica(found) as (_, three):

            def is_known() -> bool:
                return all(held_back(three, key) for key in ("anne/a#1", "anne/b#2"))

            await until(is_known, "the new gateway knows of both")
        await until(lambda: held_back(one, "anne/b#2"), "so do all others")


async def test_a_session_that_has_ended_is_forgotten_at_all_replicas() -> None:
    async with two_replicas(idle_timeout=0.1) as (_, (_, one), (_, two)):
        one.add("anne/a#1", "anne", CRM)
        await one.settled("anne")
        await until(lambda: not held_back(one, "anne/a#1"), "one forgets it")
        await until(lambda: not held_back(two, "anne/a#1"), "and so does the other")
        assert len(one) == len(two) == 0


async def test_a_replica_that_takes_in_no_label_may_call_nothing_and_holds_up_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common_labels, "PATIENCE", 0.2)
    async with two_replicas() as (_, (_, one), (link, _)):
        deaf = link.laid()
        deaf.on_request = lambda line, stream, message: None
        one.add("anne/a#1", "anne", CRM)
        async with asyncio.timeout(10):
            await one.settled("anne")
        await until(lambda: deaf.lost, "the end of its line")


async def test_labels_that_make_no_sense_cost_their_request_alone() -> None:
    async with two_replicas() as (_, (link, one), (_, two)):
        for body in (
            b"7",
            b'[["anne"]]',
            b'[["anne", [7], []]]',
            b'[["anne", ["k"], [["t", "x"]]]]',
        ):
            request = {"op": "labels", "json": len(body)}
            stream = await link.laid().request_with(request, body)
            with pytest.raises(InvalidInput, match="makes no sense"):
                await stream.receive()
        one.add("anne/a#1", "anne", CRM)
        await one.settled("anne")
        assert held_back(two, "anne/a#1")
