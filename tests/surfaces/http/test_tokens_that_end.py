"""Tokens that expire or are revoked while the server runs hold no longer, in open streams too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.exceptions import ConnectionClosed

from divingbell import Divingbell
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from divingbell.surfaces.http import event_log
from divingbell.surfaces.http.operations import BASE
from divingbell.surfaces.token_store import TokenStore
from tests.surfaces.http.jupyter.talking import talking
from tests.surfaces.http.serving import BERT, EVENTS, Site, heard, served
from tests.waiting import PATIENCE, until

SPINNING = "import time\nwhile True:\n    print('.', flush=True)\n    time.sleep(0.02)"


@dataclass
class Clock:
    """What the store takes for the time."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Ending:
    """A token of Anne's that a test ends, in one of the two ways."""

    site: Site
    store: TokenStore
    clock: Clock
    way: str

    def __post_init__(self) -> None:
        self.token, self.kept = self.store.create("anne", frozenset(SCOPES), 60.0)

    def end(self) -> None:
        if self.way == "revoked":
            self.store.revoke(self.kept.id)
        else:
            self.clock.now += 61


@pytest.fixture(params=["revoked", "expired"])
async def ending(
    request: pytest.FixtureRequest,
    bell: Divingbell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Ending]:
    monkeypatch.setattr(event_log, "PULSE", 0.05)
    clock = Clock()
    store = TokenStore(tmp_path / "tokens.json", clock)
    async with served(bell, Tokens({"bert": hash_of(BERT)}, frozenset(SCOPES), store)) as site:
        yield Ending(site, store, clock, request.param)
    await bell.owned.leave_all()


async def test_requests_are_refused_from_then_on(ending: Ending) -> None:
    async with ending.site.client(ending.token) as anne:
        assert (await anne.get(f"{BASE}/me")).status_code == 200
        ending.end()
        refused = await anne.get(f"{BASE}/me")
        assert refused.status_code == 401 and "revoked" in refused.json()["detail"]
        assert (await anne.get(f"/jupyter/api?token={ending.token}")).status_code == 401
        assert (await anne.post("/mcp", json={})).status_code == 401


async def test_a_cookie_is_good_no_longer_than_its_token(ending: Ending) -> None:
    async with ending.site.client(None, Origin=ending.site.url) as browser:
        answer = await browser.post("/login", json={"token": ending.token})
        browser.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
        async with browser.stream("GET", f"{BASE}/events") as stream:
            events = heard(stream)
            assert (await anext(events)).name == "hello"
            ending.end()
            assert [each.name async for each in events if each.name != "session.changed"] == []
        assert (await browser.get(f"{BASE}/me")).status_code == 401


async def test_streams_that_are_open_end(ending: Ending) -> None:
    where = f"{BASE}/sessions/endless/execute"
    async with (
        ending.site.client(ending.token) as anne,
        anne.stream("GET", f"{BASE}/events") as page,
        anne.stream("POST", where, json={"code": SPINNING}, headers=EVENTS) as run,
    ):
        told, shown = heard(page), heard(run)
        assert (await anext(told)).name == "hello"
        number = (await anext(shown)).data["execution"]
        assert (await anext(shown)).name == "stdout"
        ending.end()
        assert "done" not in [each.name async for each in shown]
        async for _ in told:
            pass
    # The run was cancelled, as it is where its client leaves.
    service = ending.site.app._service
    assert service is not None
    await until(lambda: number not in [each.id for each in service.executions.active()], "it ends")


async def test_a_kernel_takes_and_tells_nothing_more(ending: Ending) -> None:
    async with ending.site.client(ending.token) as anne:
        kernel = (await anne.post("/jupyter/api/kernels")).json()["id"]
    async with talking(ending.site.url, kernel, ending.token) as talker:
        assert (await talker.run("print(1)")).text == "1\n"
        ending.end()
        with contextlib.suppress(ConnectionClosed):
            await talker.send("execute_request", {"code": "open('mark', 'w')"})
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                while True:
                    await talker.next()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


async def test_what_a_kernel_shows_is_not_told_either(ending: Ending) -> None:
    async with ending.site.client(ending.token) as anne:
        kernel = (await anne.post("/jupyter/api/kernels")).json()["id"]
    async with talking(ending.site.url, kernel, ending.token) as talker:
        await talker.send("execute_request", {"code": SPINNING})
        await talker.until("stream")
        ending.end()
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(20):
                while True:
                    await talker.next()


async def test_an_mcp_clients_stream_tells_nothing_more(ending: Ending) -> None:
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with (
        ending.site.client(ending.token) as inner,
        Client(streamable_http_client(f"{ending.site.url}/mcp", http_client=inner)) as client,
    ):
        given = {"code": SPINNING, "session_id": "endless"}
        call = client.call_tool("execute_python", given, progress_callback=on_progress)
        running = asyncio.create_task(call)
        await until(lambda: told, "something is told")
        ending.end()
        service = ending.site.app._service
        assert service is not None
        await until(lambda: not service.queue.running, "the cell has ended")
        await asyncio.wait([running], timeout=PATIENCE)
        assert running.done() and (running.exception() is not None or running.result().is_error)
        heard_of = len(told)
        with pytest.raises(Exception, match=r".*"):
            await client.call_tool("execute_python", {"code": "1"})
        assert len(told) == heard_of
