"""Whose call it is, by each way in; and what a client reads when its user is over a rate."""

import json
import os
import pwd
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from divingbell import Divingbell
from divingbell.events import ExecutionRefused, JournalEvent, SessionOpened
from divingbell.host.login import login_name
from divingbell.settings.config import Settings, load
from divingbell.surfaces.auth import Tokens
from divingbell.surfaces.cli.serving import with_private_users
from divingbell.surfaces.http.application import mcp_application
from divingbell.surfaces.mcp.replicas import Alone
from divingbell.surfaces.token_store import TokenStore
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.serving import COMMAND, QUIET
from tests.surfaces.mcp.test_http import ANNE, BERT, connected, run, served

ACCOUNT = pwd.getpwuid(os.geteuid()).pw_name
RATE = "[policy]\nexecution_rate_per_user = '1/hour'\n"


@pytest.fixture
async def limited() -> AsyncIterator[tuple[Divingbell, list[JournalEvent]]]:
    heard: list[JournalEvent] = []
    policy = {"execution_rate_per_user": "2/hour"}
    async with Divingbell(pool=0, preload=(), policy=policy, on_event=heard.append) as bell:
        yield bell, heard


def test_the_login_name_is_the_kernels_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert login_name() == ACCOUNT
    monkeypatch.setattr(os, "geteuid", lambda: 3_999_999_999)
    assert login_name() == "uid 3999999999"


async def test_over_http_it_is_the_tokens_name_and_its_rate_is_its_own(
    limited: tuple[Divingbell, list[JournalEvent]], era: Era
) -> None:
    bell, heard = limited
    async with served(bell) as url:
        async with connected(url, ANNE, era) as anne:
            assert await run(anne, "1") == "1\n"
            assert await run(anne, "2", session_id="work") == "2\n"
            refused = await anne.call_tool("execute_python", {"code": "3", "session_id": "other"})
        async with connected(url, ANNE, era) as again, connected(url, BERT, era) as bert:
            assert "again in 1800 s" in await run(again, "4")
            assert await run(bert, "5") == "5\n"
    assert refused.is_error and text_of(refused).endswith("again in 1800 s")
    told = refused.structured_content
    assert told is not None and told["status"] == "error"
    assert told["error"]["type"] == "RateExceeded" and told["error"]["retry_after"] == 1800
    opened = {event.principal.user for event in heard if isinstance(event, SessionOpened)}
    assert opened == {"anne", "bert"}
    refusals = [event for event in heard if isinstance(event, ExecutionRefused)]
    assert [(event.principal.user, event.principal.client) for event in refusals] == [
        ("anne", "http"),
        ("anne", "http"),
    ]


async def test_over_stdio_it_is_the_login_name_and_the_audit_log_has_the_refusal(
    tmp_path: Path, era: Era
) -> None:
    file = tmp_path / "divingbell.toml"
    file.write_text(RATE)
    environment: dict[str, Any] = {"XDG_DATA_HOME": str(tmp_path), "USER": "somebody-else"}
    parameters = StdioServerParameters(
        command=COMMAND,
        args=["serve", "--config", str(file)],
        env={**os.environ, **QUIET, **environment},
    )
    async with Client(parameters, mode=era) as client:
        assert await run(client, "1") == "1\n"
        assert "again in 3600 s" in await run(client, "2", session_id="another")
    lines = [line for path in tmp_path.rglob("*.jsonl") for line in path.read_text().splitlines()]
    records = [json.loads(line) for line in lines]
    assert {record["user"] for record in records if "client" in record} == {ACCOUNT}
    [refused] = [each for each in records if each.get("kind") == "execution.refused"]
    assert refused["status"] == "refused" and "again in 3600 s" in refused["reason"]


async def test_users_whose_data_is_personal_are_told_so_and_others_are_not(era: Era) -> None:
    rules = {"users": ["anne"]}
    async with (
        Divingbell(pool=0, preload=(), privacy="secrets", privacy_rules=rules) as bell,
        served(bell) as url,
        connected(url, ANNE, era) as anne,
        connected(url, BERT, era) as bert,
    ):
        assert "Personal data and secrets are not shown to you" in (anne.instructions or "")
        assert "[EMAIL_" in await run(anne, "print('zelda@jazz.org')")
        assert "\nSecrets are not shown to you" in (bert.instructions or "")
        assert await run(bert, "print('zelda@jazz.org')") == "zelda@jazz.org\n"


async def test_a_token_with_the_scope_private_has_its_user_among_them(
    era: Era, tmp_path: Path
) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    private, _ = store.create("anne", frozenset({"run", "private"}))
    usual, _ = store.create("anne", frozenset({"run"}))
    open_, _ = store.create("bert", frozenset({"run"}))
    tokens = Tokens({}, store=store)
    settings = load(None, {"pool": 0, "preload": (), "privacy": "secrets"}, environment={})
    async with (
        Divingbell.of(with_private_users(settings, tokens)) as bell,
        served(bell, tokens) as url,
    ):
        for token in (private, usual):  # it is about the user
            async with connected(url, token, era) as anne:
                assert "Personal data and secrets are not shown to you" in (anne.instructions or "")
                assert "[EMAIL_" in await run(anne, "print('zelda@jazz.org')")
        async with connected(url, open_, era) as bert:
            assert await run(bert, "print('zelda@jazz.org')") == "zelda@jazz.org\n"
        # One that was made since is let in nowhere: what it asks for would not be so.
        later, _ = store.create("bert", frozenset({"run", "private"}))
        headers = {"Authorization": f"Bearer {later}"}
        async with httpx2.AsyncClient(headers=headers) as client:
            answer = await client.post(url, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "not_private")
            assert "started again" in answer.json()["detail"]
        async with connected(url, open_, era) as bert:
            assert await run(bert, "print('zelda@jazz.org')") == "zelda@jazz.org\n"


async def test_a_replica_lets_no_private_token_in_whose_user_it_does_not_protect(
    tmp_path: Path,
) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    private, _ = store.create("anne", frozenset({"run", "private"}))
    tokens = Tokens({}, store=store)
    settings = load(None, {"pool": 0, "preload": (), "privacy": "secrets"}, environment={})

    async def code(chosen: Settings) -> str:
        async with Divingbell.of(chosen) as bell:
            app, surface = mcp_application(bell, tokens, (), Alone(), lambda endpoint: endpoint)
            transport = httpx2.ASGITransport(app=app)
            headers = {"Authorization": f"Bearer {private}"}
            async with httpx2.AsyncClient(transport=transport, headers=headers) as client:
                answer = await client.get("http://localhost/nowhere")
            await surface.close()
            return str(answer.json()["code"])

    assert await code(settings) == "not_private"
    assert await code(with_private_users(settings, tokens)) == "not_found"
