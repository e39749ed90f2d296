"""Over HTTP: who is let in, and whose sessions are whose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from divingbell import Divingbell
from divingbell.errors import ConfigError
from divingbell.shares import weight
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import listening
from divingbell.surfaces.http.application import application
from divingbell.surfaces.mcp import endpoint, suspended_calls
from tests import real_servers
from tests.surfaces.mcp.conftest import Era, Listener, text_of
from tests.waiting import PATIENCE, until

ANNE, BERT = "anne-has-a-long-token", "bert-has-a-long-token"
HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@contextlib.asynccontextmanager
async def served(bell: Divingbell, tokens: Tokens | None = None) -> AsyncIterator[str]:
    known = tokens or Tokens({"anne": hash_of(ANNE), "bert": hash_of(BERT)})
    listener = listening.bound("127.0.0.1", 0)
    ready = asyncio.Event()
    serving = asyncio.create_task(listening.serve(application(bell, known), listener, ready.set))
    await ready.wait()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    serving.cancel()
    await asyncio.wait([serving])


@pytest.fixture
async def url(bell_with_shop: Divingbell) -> AsyncIterator[str]:
    async with served(bell_with_shop) as url:
        yield url


@contextlib.asynccontextmanager
async def connected(
    url: str, token: str, era: Era, listener: Listener | None = None
) -> AsyncIterator[Client]:
    options: dict[str, Any] = {} if listener is None else listener.options()
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
    ) as inner:
        transport = streamable_http_client(url, http_client=inner)
        async with Client(transport, mode=era, **options) as client:
            yield client


async def run(client: Client, code: str, **more: Any) -> str:
    return text_of(await client.call_tool("execute_python", {"code": code, **more}))


# Who is let in


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer wrong", f"Basic {ANNE}", ANNE, f"Bearer {ANNE}x"]
)
async def test_without_a_right_token_nothing_is_answered(url: str, header: str | None) -> None:
    headers = ACCEPT | ({} if header is None else {"Authorization": header})
    async with httpx2.AsyncClient() as client:
        for method in ("POST", "GET", "DELETE"):
            answer = await client.request(method, url, json=HANDSHAKE, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert ANNE not in answer.text


async def test_a_token_in_the_address_is_not_taken(url: str) -> None:
    async with httpx2.AsyncClient() as client:
        answer = await client.post(f"{url}?access_token={ANNE}", json=HANDSHAKE, headers=ACCEPT)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}], ids=str
)
async def test_a_web_page_that_points_its_name_here_is_refused(
    url: str, header: dict[str, str]
) -> None:
    headers = ACCEPT | header | {"Authorization": f"Bearer {ANNE}"}
    async with httpx2.AsyncClient() as client:
        answer = await client.post(url, json=HANDSHAKE, headers=headers)
    assert answer.status_code in (403, 421)


async def test_a_body_that_is_too_large_is_refused(url: str) -> None:
    headers = ACCEPT | {"Authorization": f"Bearer {ANNE}", "Content-Type": "application/json"}
    async with httpx2.AsyncClient() as client:
        answer = await client.post(url, content=b" " * (endpoint.MAX_BODY + 1), headers=headers)
    assert answer.status_code == 413


NO_REQUESTS = (
    b"", b"null", b"[]", b"{]", b"\xff", b"[" * 1_000_000, b'{"a":' * 100_000, b"9" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_python"}}',
    b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
)  # fmt: skip


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28", "9999-99-99", "\x7f"])
async def test_a_body_that_is_no_request_does_no_harm(url: str, revision: str) -> None:
    headers = ACCEPT | {
        "Authorization": f"Bearer {ANNE}",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": revision,
    }
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as client:
        for body in NO_REQUESTS:
            answer = await client.post(url, content=body)
            assert 400 <= answer.status_code < 500, body[:50]
            assert "Traceback" not in answer.text


async def test_other_paths_are_not_there(url: str) -> None:
    headers = {"Authorization": f"Bearer {ANNE}"}
    async with httpx2.AsyncClient(headers=headers) as client:
        assert (await client.get(f"{url}/more")).status_code == 404


async def test_a_tool_that_is_hidden_from_a_user_is_like_one_that_is_not_there() -> None:
    """Headers are compared with a tool's schema before anything else: that told of it."""
    command, arguments = real_servers.fixture("conformance")
    entry = {"command": command, "args": arguments, "direct": ["*"]}
    tools = ["suite.test_x_mcp_header"]
    rules = [
        {"tools": tools, "action": "allow", "users": ["anne"]},
        {"tools": tools, "action": "deny"},
    ]
    policy, servers = {"rules": rules}, {"suite": entry}
    async with (
        Divingbell(pool=0, mode="hybrid", servers=servers, policy=policy) as bell,
        served(bell) as url,
        connected(url, ANNE, "auto") as client,
    ):
        await client.list_tools()
        name = "test_x_mcp_header"
        assert (await _call_without_headers(url, ANNE, name))["code"] == types.HEADER_MISMATCH
        hidden = await _call_without_headers(url, BERT, name)
        strange = await _call_without_headers(url, BERT, "no_such_tool")
    assert hidden["code"] == strange["code"] == types.INVALID_PARAMS
    assert hidden["message"] == strange["message"].replace("no_such_tool", name)


async def _call_without_headers(url: str, token: str, name: str) -> dict[str, Any]:
    """The error of a call of the newer protocol with an argument that wants a header."""
    method, revision = "tools/call", "2026-07-28"
    about = {
        "protocolVersion": revision,
        "clientInfo": {"name": "test", "version": "1"},
        "clientCapabilities": {},
    }
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
    params = {"name": name, "arguments": {"region": "north"}, "_meta": meta}
    headers = ACCEPT | {
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": revision,
        "Mcp-Method": method,
        "Mcp-Name": name,
    }
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        error: dict[str, Any] = (await client.post(url, json=body)).json()["error"]
    return error


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert all(map(listening.is_loopback, ("127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]")))
    assert not any(map(listening.is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


def test_an_address_that_is_taken_is_told() -> None:
    with listening.bound("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(ConfigError, match="can't be listened at"):
            listening.bound("127.0.0.1", first.getsockname()[1])


# Whose sessions are whose


async def test_code_runs_over_http(url: str, era: Era) -> None:
    async with connected(url, ANNE, era) as client:
        assert await run(client, "x = 41") and await run(client, "x + 1") == "42\n"


async def test_progress_comes_while_it_runs(url: str, era: Era, listener: Listener) -> None:
    async with connected(url, ANNE, era, listener) as client:
        await client.call_tool(
            "execute_python", {"code": "print('so far')"}, progress_callback=listener.on_progress
        )
        await until(lambda: listener.progress, "the progress has come")
    assert listener.progress == [(1, "so far")]


async def test_another_user_reaches_neither_sessions_nor_files(url: str, era: Era) -> None:
    async with connected(url, ANNE, era) as anne, connected(url, BERT, era) as bert:
        await run(anne, "secret = 1; open('secret.txt', 'w').write('s')", session_id="shared")
        assert "NameError" in await run(bert, "secret", session_id="shared")
        listed = (await anne.list_resources()).resources
        assert [item.name for item in listed] == ["secret.txt"]
        assert (await bert.list_resources()).resources == []
        with pytest.raises(MCPError):
            await bert.read_resource(listed[0].uri)
        await bert.call_tool("close_session", {"session_id": "shared"})
        assert (await bert.call_tool("close_session", {"session_id": "shared"})).is_error
        assert await run(anne, "secret", session_id="shared") == "1\n"


async def test_in_the_older_protocol_each_connection_has_a_session_of_its_own(url: str) -> None:
    async with connected(url, ANNE, "legacy") as one, connected(url, ANNE, "legacy") as other:
        await run(one, "mine = 1")
        assert "NameError" in await run(other, "mine")
        listed = (await other.call_tool("list_sessions", {})).structured_content["sessions"]
        assert [session["session_id"] for session in listed] == ["default"]


async def test_in_the_newer_protocol_each_token_has_a_session_of_its_own(url: str) -> None:
    async with connected(url, ANNE, "auto") as one, connected(url, ANNE, "auto") as other:
        await run(one, "mine = 1")
        assert await run(other, "mine") == "1\n"
    async with connected(url, BERT, "auto") as bert:
        assert "NameError" in await run(bert, "mine")


async def test_a_named_session_is_there_for_the_next_connection(url: str, era: Era) -> None:
    async with connected(url, ANNE, era) as one:
        await run(one, "kept = 7", session_id="long")
    async with connected(url, ANNE, era) as other:
        assert await run(other, "kept", session_id="long") == "7\n"


async def test_a_session_ends_with_its_connection(url: str, bell_with_shop: Divingbell) -> None:
    before = len(bell_with_shop.sessions())
    async with connected(url, ANNE, "legacy") as client:
        await run(client, "1")
        assert len(bell_with_shop.sessions()) == before + 1
    await until(lambda: len(bell_with_shop.sessions()) == before, "the session has ended")


async def test_another_users_connection_can_not_be_used_or_ended(
    url: str, bell_with_shop: Divingbell
) -> None:
    async with httpx2.AsyncClient() as client:
        headers = ACCEPT | {"Authorization": f"Bearer {ANNE}"}
        opened = await client.post(url, json=HANDSHAKE, headers=headers)
        key = opened.headers["mcp-session-id"]
        theirs = ACCEPT | {"Authorization": f"Bearer {BERT}", "Mcp-Session-Id": key}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await client.post(url, json=call, headers=theirs)).status_code == 404
        assert (await client.delete(url, headers=theirs)).status_code == 404
        mine = headers | {"Mcp-Session-Id": key}
        assert (await client.delete(url, headers=mine)).status_code == 200


# Calls that wait for an answer


async def test_a_call_that_waits_is_resumed_by_its_own_user_only_and_once(url: str) -> None:
    code = {"code": "from servers.shop import paint\nprint(paint())"}
    answer = types.ElicitResult(action="accept", content={"colour": "blue"})
    listener = Listener()
    async with (
        connected(url, ANNE, "auto", listener) as anne,
        connected(url, BERT, "auto", listener) as bert,
    ):
        asked = await anne.session.call_tool("execute_python", code, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult) and asked.input_requests
        [key] = asked.input_requests
        back: dict[str, Any] = {
            "input_responses": {key: answer},
            "request_state": asked.request_state,
            "allow_input_required": True,
        }
        with pytest.raises(MCPError, match="requestState"):
            await bert.session.call_tool("execute_python", code, **back)
        with pytest.raises(MCPError, match="requestState"):
            await anne.session.call_tool("execute_python", {"code": "1"}, **back)
        done = await anne.session.call_tool("execute_python", code, **back)
        assert isinstance(done, types.CallToolResult) and text_of(done) == "painted blue\n"
        with pytest.raises(MCPError, match="requestState"):
            await anne.session.call_tool("execute_python", code, **back)


async def test_a_question_that_is_not_answered_is_put_again(url: str) -> None:
    code = {"code": "from servers.shop import paint\nprint(paint())"}
    async with connected(url, ANNE, "auto", Listener()) as anne:
        asked = await anne.session.call_tool("execute_python", code, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        again = await anne.session.call_tool(
            "execute_python", code, request_state=asked.request_state, allow_input_required=True
        )
        assert isinstance(again, types.InputRequiredResult)
        assert again.input_requests == asked.input_requests
        assert again.request_state != asked.request_state


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize(("most", "given_up"), [(4, 0), (3, 0), (2, 1)])
async def test_only_so_many_calls_of_a_user_wait(
    url: str, most: int, given_up: int, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspended_calls, "MAX_LARGE_KEPT" if large else "MAX_KEPT", most)
    code = {"code": "from servers.shop import paint\nprint(paint())"}
    if large:
        code["code"] += f"  # {'x' * weight.LARGE_TEXT}"
    answer = types.ElicitResult(action="accept", content={"colour": "blue"})
    async with connected(url, ANNE, "auto", Listener()) as anne:
        waiting = []
        for number in range(3):
            given = code | {"session_id": f"s{number}"}
            asked = await anne.session.call_tool("execute_python", given, allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult) and asked.input_requests
            waiting.append(
                (given, asked.request_state, {key: answer for key in asked.input_requests})
            )
        refused = 0
        for given, state, answers in waiting:
            try:
                await anne.session.call_tool(
                    "execute_python", given, request_state=state, input_responses=answers
                )
            except MCPError:
                refused += 1
    assert refused == given_up


async def test_a_client_that_hangs_up_ends_its_cell(
    url: str, bell_with_shop: Divingbell, era: Era
) -> None:
    async with connected(url, ANNE, era) as client:
        await run(client, "import time; kept = 1", session_id="long")
        [session] = [one for one in bell_with_shop.sessions() if one.id == "long"]
        call = asyncio.create_task(run(client, "time.sleep(300)", session_id="long"))
        await until(lambda: session.busy, "the cell runs")
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: not session.busy, "the cell has ended")
        assert await run(client, "kept", session_id="long") == "1\n"
