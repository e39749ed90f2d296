"""Rules about flows behind an MCP client: direct calls, sessions and connections together."""

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from divingbell import Divingbell
from divingbell.principal import Principal
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.passthrough.passthrough import Passthrough
from tests.gateway.galley import ENTRY
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.test_http import ANNE, BERT, connected, run, served
from tests.waiting import until

READ = "x = servers.crm.echo('ada'); x"
POST = "servers.slack.echo('posted')"


@pytest.fixture(scope="module")
async def house() -> AsyncIterator[Divingbell]:
    entry = {**ENTRY, "direct": ["*"]}
    async with Divingbell(
        pool=0,
        preload=[],
        search="words",
        mode="hybrid",
        servers={"crm": entry, "slack": entry},
        policy={"flow": [{"from": "crm.*", "to": "slack.*", "action": "deny"}]},
    ) as bell:
        for name in ("crm", "slack"):
            await bell.gateway.fleet.wait_until_ready(name)
        yield bell


@pytest.fixture
async def url(house: Divingbell) -> AsyncIterator[str]:
    async with served(house) as url:
        yield url
    # Of the newer era all of a user's is one conversation, until Divingbell ends.
    house.gateway.labels._conversations.clear()
    house.gateway.labels._counts.clear()


async def direct(client: Client, tool: str, text: str = "posted") -> str:
    return text_of(await client.call_tool(tool, {"text": text}))


async def is_held_back(client: Client) -> bool:
    """Whether nothing is posted, directly and by code, also of a session that it has not yet."""
    said = {
        "denied by policy: this conversation has data of crm." in words
        for words in (
            await direct(client, "slack__echo"),
            await run(client, POST),
            await run(client, POST, session_id=f"other{id(client)}"),
        )
    }
    assert len(said) == 1, "some ways are open"
    return said.pop()


async def test_what_was_called_directly_holds_back_code_and_the_other_way_round(
    url: str, era: Era
) -> None:
    for token, is_direct in ((ANNE, True), (BERT, False)):
        async with connected(url, token, era) as client:
            assert not await is_held_back(client)
            if is_direct:
                await direct(client, "crm__echo", "ada")
            else:
                assert "ada" in await run(client, READ)
            assert await is_held_back(client)
            await client.call_tool("close_session", {})
            assert await is_held_back(client), "the next session is of the same conversation"


async def test_resources_prompts_and_lists_are_sources_for_clients_too(url: str) -> None:
    async with connected(url, ANNE, "legacy") as client:
        await client.get_prompt("crm__plan", {"topic": "x"})
        assert await is_held_back(client)
    async with connected(url, ANNE, "legacy") as client:
        await client.list_prompts()
        assert await is_held_back(client)
    async with connected(url, ANNE, "legacy") as client:
        found = [each.uri for each in (await client.list_resources()).resources]
        await client.read_resource(next(uri for uri in found if "crm" in uri))
        assert await is_held_back(client)


async def test_connections_are_conversations_and_without_them_there_is_one_for_each_user(
    url: str, era: Era
) -> None:
    async with (
        connected(url, ANNE, era) as first,
        connected(url, ANNE, era) as second,
        connected(url, BERT, era) as other,
    ):
        await direct(first, "crm__echo")
        assert await is_held_back(first)
        assert ("denied" in await direct(second, "slack__echo")) == (era == "auto")
        assert not await is_held_back(other)


async def test_who_uses_a_session_of_another_connection_is_one_with_it(url: str) -> None:
    async with (
        connected(url, ANNE, "legacy") as first,
        connected(url, ANNE, "legacy") as second,
        connected(url, ANNE, "legacy") as third,
    ):
        await run(first, "1", session_id="shared")
        await run(second, "1", session_id="shared")
        assert await direct(second, "slack__echo") == "posted"
        await run(first, READ)
        assert await is_held_back(second), "whatever the first one learns may lie in the session"
        assert await direct(third, "slack__echo") == "posted"
        assert "ada" in await run(third, "'ada'", session_id="shared")
        assert "denied" in await direct(third, "slack__echo")


async def test_a_session_keeps_what_a_connection_that_has_ended_had_left_in_it(
    house: Divingbell, url: str
) -> None:
    async with connected(url, ANNE, "legacy") as first:
        await run(first, READ, session_id="left")
    await until(lambda: _clients(house) == 0, "the connection ends")
    async with connected(url, ANNE, "legacy") as second:
        assert await direct(second, "slack__echo") == "posted"
        assert "denied" in await run(second, POST, session_id="left")
        assert await is_held_back(second)


async def test_names_of_files_are_data_as_well(url: str) -> None:
    async with connected(url, ANNE, "legacy") as first, connected(url, ANNE, "legacy") as second:
        code = f"{READ}\nopen(x, 'w').close()"
        await run(first, code, session_id="files")
        assert await direct(second, "slack__echo") == "posted"
        listed = [each.uri for each in (await second.list_resources()).resources]
        assert any("ada" in uri for uri in listed)
        assert "denied" in await direct(second, "slack__echo")


async def test_a_client_that_is_idle_has_forgotten_nothing(house: Divingbell) -> None:
    passing = Passthrough(house.gateway, {"crm": ("*",), "slack": ("*",)}, idle_timeout=-1.0)
    for principal in (Principal("idle", "", "http"), Principal("idle", "talk", "http")):
        channel = ClientChannel(principal)
        tools = passing.tools("idle")
        read = await passing.call(tools["crm__echo"], {"text": "ada"}, channel)
        assert text_of(read) == "ada"
        post = await passing.call(tools["slack__echo"], {"text": "ada"}, channel)
        assert "denied" in text_of(post)
    house.gateway.labels.leave("talk")
    assert _clients(house) == 1
    house.gateway.labels.leave("")


def _clients(house: Divingbell) -> int:
    return sum(isinstance(each, Principal) for each in house.gateway.labels._conversations)
