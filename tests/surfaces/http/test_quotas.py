"""Requests over HTTP: what one user may have under way, so that there is room for the others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from divingbell import Divingbell
from divingbell.gateway.discovery import Discovery
from divingbell.shares.allowance import RESULT, Hold
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import listening, quotas
from divingbell.surfaces.http.application import application
from divingbell.surfaces.mcp import limits, openings
from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.test_http import ACCEPT, ANNE, BERT, HANDSHAKE, connected
from tests.waiting import PATIENCE

LISTS = b'{"a":[' + b"[]," * 100_000 + b"[]]}"


@pytest.fixture
async def url(bell: Divingbell) -> AsyncIterator[str]:
    known = Tokens({"anne": hash_of(ANNE), "bert": hash_of(BERT)})
    listener, ready = listening.bound("127.0.0.1", 0), asyncio.Event()
    app = application(bell, known)
    serving = asyncio.create_task(listening.serve(app, listener, ready.set))
    await ready.wait()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    serving.cancel()
    await asyncio.wait([serving])


def client(token: str, **headers: str) -> httpx2.AsyncClient:
    headers = {**ACCEPT, "Authorization": f"Bearer {token}", **headers}
    return httpx2.AsyncClient(
        headers={"Content-Type": "application/json", **headers},
        timeout=PATIENCE,
        limits=httpx2.Limits(max_connections=None),
    )


async def test_each_user_has_so_many_connections_and_gets_one_back_for_one_that_ends(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "MAX_CONNECTIONS", 3)
    async with client(ANNE) as anne, client(BERT) as bert:
        opened = [await anne.post(url, json=HANDSHAKE) for _ in range(4)]
        assert [answer.status_code for answer in opened] == [200, 200, 200, 429]
        assert "end one (DELETE) first" in opened[-1].text
        assert (await bert.post(url, json=HANDSHAKE)).status_code == 200
        session = opened[0].headers["mcp-session-id"]
        assert (await anne.delete(url, headers={"mcp-session-id": session})).status_code == 200
        assert (await anne.post(url, json=HANDSHAKE)).status_code == 200


async def test_connections_that_are_opened_at_once_are_counted_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "MAX_CONNECTIONS", 3)
    async with client(ANNE) as anne:
        answers = await asyncio.gather(*[anne.post(url, json=HANDSHAKE) for _ in range(20)])
    assert sum(answer.status_code == 200 for answer in answers) == 3


async def test_each_user_has_so_many_requests_under_way(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_REQUESTS", 2)
    async with client(ANNE) as anne, client(BERT) as bert, contextlib.AsyncExitStack() as stack:
        opened = await anne.post(url, json=HANDSHAKE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        stream = anne.stream("GET", url, headers=session)
        assert (await stack.enter_async_context(stream)).status_code == 200
        release = asyncio.Event()
        stack.callback(release.set)
        half = asyncio.create_task(anne.post(url, content=_half(release)))
        refused = None
        async with asyncio.timeout(PATIENCE):
            while refused is None or refused.status_code != 429:
                refused = await anne.delete(url, headers={"mcp-session-id": "nobody's"})
        assert "wait for one to end" in refused.text
        assert (await bert.post(url, json=HANDSHAKE)).status_code == 200
        release.set()
        assert (await half).status_code == 400


async def test_strangers_who_send_slowly_keep_out_no_other_stranger(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_REQUESTS", 2)
    place = url.removesuffix("/mcp")
    async with contextlib.AsyncExitStack() as stack, client("") as stranger:
        del stranger.headers["Authorization"]
        for _ in range(3):
            host, _, port = place.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.push_async_callback(writer.wait_closed)
            stack.callback(writer.close)
            head = f"POST /login HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\n"
            writer.write(f"{head}Content-Length: 9\r\n\r\n".encode())
            async with asyncio.timeout(PATIENCE):
                assert b" 100 " in await reader.readline()  # its body is waited for
        assert (await stranger.get(f"{place}/healthz")).status_code == 200
        signed_in = await stranger.post(f"{place}/login", json={"token": ANNE})
        assert signed_in.status_code == 204


async def _half(release: asyncio.Event) -> AsyncIterator[bytes]:
    yield b"{"
    await release.wait()
    yield b"]"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(
    url: str, revision: str
) -> None:
    async with client(ANNE, **{"MCP-Protocol-Version": revision}) as anne:
        if revision in HANDSHAKE_PROTOCOL_VERSIONS:
            opened = await anne.post(url, json=HANDSHAKE)
            anne.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        answer = await anne.post(url, content=LISTS)
        assert answer.status_code == 413 and "too many lists" in answer.text
        text: Any = {"a": LISTS.decode()}
        assert (await anne.post(url, json=text)).status_code == 400


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
async def test_what_a_client_says_of_itself_is_kept_and_may_not_be_large(
    url: str, again: bool
) -> None:
    said = {"name": "x" * limits.MAX_OPENING, "version": "1"}
    large = {**HANDSHAKE, "params": {**HANDSHAKE["params"], "clientInfo": said}}
    async with client(ANNE) as anne:
        if again:
            opened = await anne.post(url, json=HANDSHAKE)
            anne.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        answer = await anne.post(url, json=large)
        assert answer.status_code == (200 if again else 413)
        assert "65,536" in answer.text and "at most" in answer.text


async def test_bodies_of_one_user_that_are_too_large_together_are_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_HELD", 1_000_000)
    release = asyncio.Event()

    async def large() -> AsyncIterator[bytes]:
        yield b'"' + b"x" * 700_000
        await release.wait()
        yield b'"'

    modern = {"MCP-Protocol-Version": "2026-07-28"}
    async with client(ANNE, **modern) as anne, client(BERT) as bert:
        first = asyncio.create_task(anne.post(url, content=large()))
        second = None
        async with asyncio.timeout(PATIENCE):
            while second is None or second.status_code != 429:
                if first.done():  # the other one came before it, and it was the one to be refused
                    first = asyncio.create_task(anne.post(url, content=large()))
                second = await anne.post(url, content=b'"' + b"x" * 700_000 + b'"')
        assert "send fewer at once" in second.text
        assert (await bert.post(url, json=HANDSHAKE)).status_code == 200
        release.set()
        assert (await first).status_code == 400


async def test_a_client_that_leaves_half_way_is_no_error_to_be_logged(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    for _ in range(3):
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANNE}\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    async with client(ANNE) as anne:
        assert (await anne.post(url, json=HANDSHAKE)).status_code == 200
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_what_tools_bring_back_counts_for_the_user_who_called(
    url: str, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Hold | None] = []
    search = Discovery.search

    async def noted(*given: Any) -> Any:
        found.append(RESULT.get())
        return await search(*given)

    monkeypatch.setattr(Discovery, "search", noted)
    for token in (ANNE, ANNE, BERT):
        async with connected(url, token, era) as each:
            await each.call_tool("search_tools", {"query": "x"})
    anne, again, bert = [hold._allowance for hold in found if hold is not None]
    assert anne is again and anne is not bert
