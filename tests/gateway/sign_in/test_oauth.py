"""Signing in at a real server behind OAuth; an HTTP client follows the redirects like a browser."""

import asyncio
import contextlib
import json
import logging
import socket
import stat
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.sign_in.issuer import SignIn
from divingbell.gateway.sign_in.loopback import Loopback
from divingbell.gateway.sign_in.oauth import Credentials, login
from divingbell.journal.events import JournalEvent, SignedIn, SignInFailed
from divingbell.journal.journal import Journal
from divingbell.principal import Principal
from divingbell.settings.servers import OAuth, Server
from tests.gateway.upstreams import (
    failure_of,
    free_port,
    listening,
    running,
    text_of,
    web_server,
)
from tests.real_servers import fixture

ANN = Principal("ann", client="command")


@contextlib.asynccontextmanager
async def guarded(lasts: int = 3600) -> AsyncIterator[Server]:
    port = free_port()
    command, arguments = fixture("guarded")
    with web_server((command, [*arguments, str(port), str(lasts)])):
        await listening(port)
        yield Server("guarded", url=f"http://127.0.0.1:{port}/mcp", transport="http", oauth=OAuth())


async def sign_in(server: Server, credentials: Credentials) -> list[str]:
    """Sign in with a client that does what a browser would; return the addresses told."""
    told: list[str] = []
    clicks: list[asyncio.Task[int]] = []

    async def browse(url: str) -> int:
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            return (await browser.get(url)).status_code

    def tell(asked: SignIn) -> None:
        told.append(asked.url)
        clicks.append(asyncio.ensure_future(browse(asked.url)))

    journal, events = Journal(), list[JournalEvent]()
    journal.watch(events.append)
    await login(
        server,
        tell,
        principal=ANN,
        credentials=credentials,
        open_browser=False,
        timeout=20,
        journal=journal,
    )
    assert [type(event) for event in events] == ([SignedIn] if told else [])
    assert all(getattr(event, "principal", None) == ANN for event in events)
    assert [await click for click in clicks] == [200] * len(clicks)
    return told


async def test_a_person_signs_in_once_and_the_tokens_stay_on_the_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    credentials = Credentials(tmp_path / "oauth")
    async with guarded() as server:
        async with running(server, tmp_path, credentials=credentials) as upstream:
            with pytest.raises(ToolFailed) as caught:
                await upstream.ready()
            assert "sign in first: run `divingbell login guarded`" in str(caught.value)
            assert caught.value.code == "tool_unavailable"

            told = await sign_in(server, credentials)
            assert parse_qs(urlsplit(told[0]).query)["code_challenge_method"] == ["S256"]
            # No restart, no waiting: the next call sees that somebody has signed in.
            assert json.loads(await text_of(upstream, "counts", {}))["registered"] == 1

            path = credentials.path(server)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            tokens = json.loads(path.read_text())["tokens"]
            revealed = await upstream.call_tool("reveal", {})
            text = revealed.model_dump_json() + upstream.log_path.read_text()
            for secret in (tokens["access_token"], tokens["refresh_token"]):
                assert secret not in text
                assert secret not in "".join(
                    record.getMessage()
                    for record in caplog.records
                    if record.levelno >= logging.INFO
                )
            assert "[secret of guarded]" in text

        assert await sign_in(server, credentials) == []  # the tokens are good
        async with running(server, tmp_path, credentials=Credentials(tmp_path / "oauth")) as again:
            assert json.loads(await text_of(again, "counts", {}))["registered"] == 1


async def test_a_sign_in_that_fails_is_told_with_who_it_was_for(tmp_path: Path) -> None:
    port = free_port()  # where nobody listens
    server = Server("away", url=f"http://127.0.0.1:{port}/mcp", transport="http", oauth=OAuth())
    journal, events = Journal(), list[JournalEvent]()
    journal.watch(events.append)
    signing_in = partial(
        login, credentials=Credentials(tmp_path), open_browser=False, principal=ANN, journal=journal
    )
    with pytest.raises(ToolFailed) as caught:
        await signing_in(server, print)
    [failed] = events
    assert isinstance(failed, SignInFailed) and failed.principal == ANN
    assert (failed.server, failed.reason) == ("away", str(caught.value))
    async with guarded() as asking:
        with pytest.raises(ToolFailed, match="nobody signed in"):
            await signing_in(asking, lambda asked: None, timeout=0.5)
        given_up = asyncio.create_task(signing_in(asking, lambda asked: given_up.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await given_up
    reasons = [each.reason for each in events if isinstance(each, SignInFailed)]
    assert "nobody signed in at guarded" in reasons[1] and reasons[2] == "CancelledError"
    assert len(events) == 3


async def test_an_expired_token_refreshes_itself_after_a_restart(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "oauth")
    async with guarded() as server:
        await sign_in(server, credentials)
        path = credentials.path(server)
        values = json.loads(path.read_text())
        path.write_text(json.dumps(values | {"expires_at": 1.0}))
        async with running(server, tmp_path, credentials=credentials) as upstream:
            assert json.loads(await text_of(upstream, "counts", {}))["refreshed"] == 1
        assert json.loads(path.read_text())["tokens"] != values["tokens"]


async def test_a_token_refused_before_its_time_is_refreshed_and_then_a_person_is_called(
    tmp_path: Path,
) -> None:
    credentials = Credentials(tmp_path / "oauth")
    async with guarded() as server:
        await sign_in(server, credentials)
        async with running(server, tmp_path, credentials=credentials) as upstream:
            await upstream.call_tool("revoke", {})
            assert json.loads(await text_of(upstream, "counts", {}))["refreshed"] >= 1
            await upstream.call_tool("revoke", {"refreshes": True})
            error = await failure_of(upstream, "counts", {})
            assert error.code == "tool_unavailable"
            assert "sign in again: run `divingbell login guarded`" in str(error)
            await sign_in(server, credentials)
            assert await text_of(upstream, "counts", {})


async def test_calls_with_a_token_do_not_wait_for_each_other(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "oauth")
    async with guarded() as server:
        await sign_in(server, credentials)
        async with running(server, tmp_path, credentials=credentials) as upstream:
            # Each of the two ends only when the other has come.
            async with asyncio.timeout(20):
                met = await asyncio.gather(*(text_of(upstream, "meet", {}) for _ in range(2)))
            assert met == ["met", "met"]


async def test_a_spoilt_file_of_tokens_means_to_sign_in_first(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "oauth")
    async with guarded() as server:
        credentials.folder.mkdir()
        credentials.path(server).write_text('{"tokens": {"access_token": 5}, "client": []}')
        async with running(server, tmp_path, credentials=credentials) as upstream:
            assert "sign in first" in str(await failure_of(upstream, "counts", {}))
            credentials.path(server).write_text("{ half a file")
            await sign_in(server, credentials)
            assert await text_of(upstream, "counts", {})
        assert credentials.forget(server)
        assert not credentials.forget(server)


async def test_nobody_there_to_sign_in_ends_after_a_while(tmp_path: Path) -> None:
    async with guarded() as server:
        with pytest.raises(ToolFailed, match="nobody signed in at guarded"):
            await login(
                server,
                lambda asked: None,
                credentials=Credentials(tmp_path),
                open_browser=False,
                timeout=0.5,
            )


async def test_there_is_nothing_to_sign_in_at_a_server_on_this_machine() -> None:
    with pytest.raises(ToolFailed, match="local has no sign-in: it runs on this machine"):
        await login(Server("local", command="x"), lambda asked: None)


async def test_the_loopback_takes_only_the_answer_that_is_expected() -> None:
    async with Loopback.open() as loopback, httpx2.AsyncClient() as browser:
        waiting = asyncio.create_task(loopback.answer())
        loopback.expect("right-state")
        twice = "?code=x&state=right-state&iss=me&iss=you"
        for query in ("", "?code=x", "?code=x&state=wrong", twice):
            assert (await browser.get(loopback.address + query)).status_code == 404
        other = loopback.address.replace("/callback", "/other") + "?code=x&state=right-state"
        assert (await browser.get(other)).status_code == 404
        assert (
            await browser.post(loopback.address + "?code=x&state=right-state")
        ).status_code == 404
        assert not waiting.done()
        answer = await browser.get(loopback.address + "?code=good&state=right-state&iss=me")
        assert answer.status_code == 200
        result = await waiting
        assert (result.code, result.state, result.iss) == ("good", "right-state", "me")


async def test_a_refusal_arrives_in_words() -> None:
    async with Loopback.open() as loopback, httpx2.AsyncClient() as browser:
        loopback.expect("state")
        await browser.get(loopback.address + "?error=access_denied<script>&state=state")
        with pytest.raises(Exception, match="refused: access_deniedscript"):
            await loopback.answer()


async def test_the_loopback_takes_another_port_if_its_own_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with Loopback.open(port) as loopback:
            assert loopback.port not in (0, port)


async def test_the_folder_of_tokens_follows_the_environment(tmp_path: Path) -> None:
    assert Credentials(None, {"XDG_DATA_HOME": "/data"}).folder == Path("/data/divingbell/oauth")
    home = Credentials(None, {"HOME": "/home/bo"}).folder
    assert home == Path("/home/bo/.local/share/divingbell/oauth")
    one = Server("x", url="https://one.example/mcp", transport="http")
    two = Server("x", url="https://two.example/mcp", transport="http")
    credentials = Credentials(tmp_path)
    assert credentials.path(one) != credentials.path(two)
