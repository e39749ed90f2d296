"""Limits of a request: it is refused before anything is made of what is too long."""

import mimetypes
import urllib.parse
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from divingbell.gateway.discovery import Discovery
from divingbell.principal import Principal
from divingbell.surfaces.mcp import limits, server, workspace
from divingbell.surfaces.mcp.client_channel import MAX_QUESTIONS
from divingbell.surfaces.mcp.exits import Exits
from divingbell.surfaces.mcp.server import Surface
from divingbell.surfaces.mcp.subscriptions import Subscriptions
from tests.surfaces.mcp.conftest import text_of

FILES = "divingbell://sessions/default/files/"
LONG = {
    "quoted": FILES + "%41" * limits.MAX_ADDRESS,
    "plain": FILES + "A" * limits.MAX_ADDRESS,
    "session": f"divingbell://sessions/{'%41' * limits.MAX_ADDRESS}/files/a",
}
NAME = "n" * (limits.MAX_NAME + 1)
MANY = [f"{FILES}{number}" for number in range(limits.MAX_SUBSCRIPTIONS + 1)]
WIDE = [f"{FILES}{number:0{limits.MAX_ADDRESS // 2}}" for number in range(200)]
CLIENT = {"name": "n" * limits.MAX_OPENING, "version": "1"}
ANSWERS = {str(number): {"action": "decline"} for number in range(MAX_QUESTIONS + 1)}
BEYOND: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("resources/read", {"uri": LONG["plain"]}),
    "subscribe": ("resources/subscribe", {"uri": LONG["plain"]}),
    "unsubscribe": ("resources/unsubscribe", {"uri": LONG["plain"]}),
    "tool": ("tools/call", {"name": NAME}),
    "prompt": ("prompts/get", {"name": NAME}),
    "reference": ("completion/complete", {"ref": {"type": "ref/prompt", "name": NAME}}),
    "template": ("completion/complete", {"ref": {"type": "ref/resource", "uri": LONG["plain"]}}),
    "argument": ("completion/complete", {"ref": {}, "argument": {"name": NAME, "value": ""}}),
    "stream": ("subscriptions/listen", {"notifications": {"resourceSubscriptions": MANY}}),
    "wide stream": ("subscriptions/listen", {"notifications": {"resourceSubscriptions": WIDE}}),
    "long stream": (
        "subscriptions/listen",
        {"notifications": {"resourceSubscriptions": [LONG["plain"]]}},
    ),
    "answers": ("tools/call", {"name": "x", "inputResponses": ANSWERS}),
    "state": ("tools/call", {"name": "x", "requestState": "v1." + "A" * limits.MAX_STATE}),
    "client": ("initialize", {"clientInfo": CLIENT}),
    "abilities": ("initialize", {"capabilities": {"experimental": {"a": [{}] * 10_000}}}),
}


@pytest.mark.parametrize("kind", BEYOND)
async def test_nothing_is_made_of_what_is_beyond_a_limit(kind: str, surface: Surface) -> None:
    async def made(_: Any) -> Any:
        raise AssertionError("something was made of it")

    method, params = BEYOND[kind]
    context: Any = SimpleNamespace(method=method, params=params)
    first = surface.server.middleware[0]
    with pytest.raises(MCPError, match=r"at most|together") as caught:
        await first(context, made)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("kind", LONG)
async def test_a_long_address_is_not_decoded(
    kind: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def unquote(text: str) -> str:
        decoded.append(len(text))
        return urllib.parse.unquote(text)

    def kind_of(path: str) -> str:
        decoded.append(len(path))
        return mimetypes.guess_type(path)[0] or ""

    monkeypatch.setattr(workspace, "unquote", unquote)
    monkeypatch.setattr(workspace, "kind_of", kind_of)
    await client.call_tool("execute_python", {"code": "1"})
    with pytest.raises(MCPError, match="an address may have"):
        await client.read_resource(LONG[kind])
    assert decoded == []


async def test_a_file_with_the_longest_path_has_an_address_that_is_taken() -> None:
    longest = workspace.uri_of("s" * 64, "\xe9" * (4095 // 2))
    assert len(longest) <= limits.MAX_ADDRESS


async def test_answers_beyond_all_questions_are_refused(client: Client) -> None:
    answers: Any = {key: types.ElicitResult(action="decline") for key in ANSWERS}
    with pytest.raises(MCPError, match="inputResponses may have 64 answers"):
        await client.call_tool("search_tools", {"query": "x"}, input_responses=answers)


async def test_no_more_of_a_query_is_searched_for_than_is_looked_at(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    search = Discovery.search

    async def noted(self: Discovery, query: str, *more: Any) -> Any:
        asked.append(len(query))
        return await search(self, query, *more)

    monkeypatch.setattr(Discovery, "search", noted)
    result = await client.call_tool("search_tools", {"query": "echo " * 100_000})
    assert "shop.echo" in text_of(result)
    assert asked and max(asked) <= server.MAX_QUERY


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("search_tools", "server"),
        ("search_tools", "detail_level"),
        ("execute_python", "session_id"),
        ("close_session", "session_id"),
    ],
)
async def test_a_long_argument_of_our_tools_is_refused_and_not_repeated(
    client: Client, tool: str, argument: str
) -> None:
    result = await client.call_tool(tool, {"code": "1", argument: NAME})
    assert result.is_error and f"{argument} may have 1,000 characters" in text_of(result)


async def test_subscriptions_of_a_connection_are_bounded_in_number_and_in_size() -> None:
    for addresses, words in ((MANY, "at most 1000"), (WIDE, "together")):
        subscriptions, taken = Subscriptions(Exits()), 0
        with pytest.raises(MCPError, match=words):
            for address in addresses:
                subscriptions.subscribe(Principal(), address)
                taken += len(address)
        assert 0 < taken <= limits.MAX_SUBSCRIBED
        subscriptions.unsubscribe(Principal(), addresses[0])
        subscriptions.subscribe(Principal(), addresses[0])
