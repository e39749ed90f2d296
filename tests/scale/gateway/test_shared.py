"""Whole gateways of replicas that share one: their pipelines, with a real server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell.border.border import OpenBorder
from divingbell.errors import ToolFailed
from divingbell.gateway.context import CallContext
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.upstream.upstream import Upstream
from divingbell.journal.journal import Journal
from divingbell.parts import Home, make_gateway
from divingbell.principal import Principal
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.remote_upstream import RemoteUpstream
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.scale.line import Line, Message, Stream
from divingbell.settings.config import Settings
from divingbell.settings.flows import Flow
from divingbell.settings.policy import Policy
from divingbell.settings.servers import read_entries
from divingbell.settings.tables import Place
from tests.gateway.upstreams import shop
from tests.scale.gateway import hosts
from tests.waiting import until

RULES = Policy(calls_per_session=4, flow=(Flow(("shop.tell",), ("shop.grow",), "deny"),))


@contextlib.asynccontextmanager
async def replica(found: hosts.Hosts) -> AsyncIterator[tuple[GatewayLink, Gateway]]:
    async with hosts.linked(found) as link:
        settings = await link.settings()
        shared = SharedGateway(link, RULES)
        await shared.start()
        home = Home()
        gateway = make_gateway(Settings(policy=RULES), home, Journal(), OpenBorder(), shared=shared)
        try:
            gateway.fleet.start(settings.servers)
            await gateway.fleet.wait_for_tools("shop")
            yield link, gateway
        finally:
            await gateway.stop()
            home.close()


async def call(gateway: Gateway, tool: str, arguments: bytes, session: str = "anne/a#1") -> str:
    principal = Principal(session.partition("/")[0], session, "http")
    context = CallContext(principal, "a", session, run=1)
    return (await gateway.answer(context, f"shop.{tool}", arguments)).body.decode()


async def test_what_one_replica_calls_counts_and_is_held_against_it_at_another() -> None:
    settings = Settings(policy=RULES)
    async with (
        hosts.running(shop(), settings=settings) as found,
        replica(found) as (_, one),
        replica(found) as (_, two),
    ):
        assert "a b" in await call(one, "echo", b'{"text": "a b"}')
        assert "told" in await call(two, "tell", b'{"text": "read"}')
        with pytest.raises(ToolFailed, match=r"conversation has data of shop\.tell"):
            await call(one, "grow", b'{"name": "weed"}')
        with pytest.raises(ToolFailed, match="there is no tool"):
            await call(two, "nothing", b"{}")
        for each in (one, two):
            with pytest.raises(ToolFailed, match=r"all 4 calls are used"):
                await call(each, "echo", b'{"text": ""}')
        assert "a b" in await call(two, "echo", b'{"text": "a b"}', "anne/b#2")


async def test_nothing_leaves_before_all_replicas_know_whose_data_it_brings() -> None:
    heard: list[Stream] = []

    def hesitate(line: Line, stream: Stream, message: Message) -> None:
        heard.append(stream)

    settings = Settings(policy=RULES)
    async with (
        hosts.running(shop(), settings=settings) as found,
        replica(found) as (_, one),
        replica(found) as (link, _),
    ):
        link.laid().on_request = hesitate
        asked = asyncio.create_task(call(one, "tell", b'{"text": "read"}'))
        await until(lambda: heard, "the other replica is told")
        # Another user's call is there and back meanwhile.
        assert "a b" in await call(one, "echo", b'{"text": "a b"}', "bert/b#2")
        assert not asked.done()
        heard[0].finish({})
        assert "told" in await asked


async def test_our_own_dataset_servers_stay_in_the_replica(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    entries = read_entries({"tables": {"datasets": str(tmp_path)}}, Place("the test"))
    async with hosts.running(shop()) as found, replica(found) as (_, gateway):
        [tables] = entries
        gateway.fleet.add(tables)
        assert isinstance(gateway.fleet.upstream("tables"), Upstream)
        assert isinstance(gateway.fleet.upstream("shop"), RemoteUpstream)
