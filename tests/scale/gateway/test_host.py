"""The process of the shared gateway: who is let in, what is answered, and when it ends."""

import asyncio
from dataclasses import replace

import pytest

from divingbell.errors import ConfigError, DivingbellError, InvalidInput
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.line import LineLost
from tests.gateway.upstreams import shop
from tests.scale.gateway import hosts


async def test_who_does_not_know_its_secret_is_not_heard() -> None:
    async with hosts.running(shop()) as found:
        assert found.address is not None
        wrong = replace(found.address, secret="0" * 64)

        async def find() -> hosts.NodeAddress:
            return wrong

        with pytest.raises(LineLost, match="does not know the secret"):
            await GatewayLink(find).start()


async def test_beyond_this_machine_it_is_not_reached_in_the_clear() -> None:
    loaded = hosts.LoadedSettings(hosts.Settings(), None)
    with pytest.raises(ConfigError, match="set RAY_USE_TLS=1"):
        hosts.GatewayHost(loaded, "the gateway", host="192.0.2.1")


async def test_it_ends_when_nobody_has_been_there_for_a_while() -> None:
    async with hosts.running(left_alone=0.2) as found:
        host = found.host
        assert host is not None
        async with hosts.linked(found) as link:
            await link.settings()
            with pytest.raises(TimeoutError):  # longer than it would wait, were nobody there
                await asyncio.wait_for(host.alone.wait(), 0.4)
        await asyncio.wait_for(host.alone.wait(), 20)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"op": "open"}, "nobody here is asked that"),
        ({"op": "reserve", "key": "anne/a"}, "the request makes no sense"),
        ({"op": "reserve", "key": 1, "user": "anne", "cell": 1}, "the request makes no sense"),
        ({"op": "holds", "json": 7}, "the request makes no sense"),
        ({"op": "ready", "server": "shop", "timeout": "soon"}, "the request makes no sense"),
        ({"op": "ready", "server": "shop", "timeout": -1.0}, "the request makes no sense"),
    ],
)
async def test_a_request_that_makes_no_sense_costs_itself_alone(
    request_: dict[str, object], error: str
) -> None:
    async with hosts.running(shop()) as found, hosts.linked(found) as link:
        with pytest.raises(DivingbellError, match=error):
            await link.laid().request(request_).receive()
        assert (await link.settings()).servers[0].name == "shop"
        stream = link.laid().request({"op": "call", "server": "shop", "what": "echo"}, b"{no json")
        message = await stream.receive()
        assert message.header["failed"] == "tool_unavailable"
        assert message.body == b"the server shop is not connected"


async def test_a_session_gets_no_connection_of_its_own_where_the_entry_says_none() -> None:
    async with hosts.running(shop()) as found, hosts.linked(found) as link:
        stream = link.laid().request({"op": "attach", "server": "shop", "session": "anne"})
        assert (await stream.receive()).header["failed"] == "tool_unknown"
        with pytest.raises(InvalidInput):
            await link.laid().request({"op": "nothing"}).receive()
