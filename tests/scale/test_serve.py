"""MCP through Ray Serve with two replicas, to which requests come at random, for both eras."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.libraries import need
from tests.scale import ray_machines
from tests.surfaces.mcp.conftest import Era, Listener, text_of

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code
PATIENCE = 60.0
CLIENTS = 8
ANNE, BERT = "anne-has-a-long-token", "bert-has-a-long-token"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "tokens").write_text(f"anne {ANNE}\nbert {BERT}\n")
    (folder / "tokens").chmod(0o600)
    (folder / "divingbell.toml").write_text(
        'audit = "off"\nskills = "off"\nmax_sessions = 40\npool = 1\n'
        '[review.rules]\nprocess = "ask"\n'
    )
    need("ray")
    with ray_machines.running() as machines, socket.socket() as found:
        import ray
        from ray import serve

        from divingbell.scale import ray_access
        from divingbell.scale import serve as ours

        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        ray_access.connect(machines.address, insecure=False)
        serve.start(http_options={"port": port})
        given = {
            "config": str(folder / "divingbell.toml"),
            "token_file": str(folder / "tokens"),
            "replicas": "2",
        }
        try:
            serve.run(ours.app(given), name="mcp", route_prefix="/")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serve.shutdown()
            ray.shutdown()


@contextlib.asynccontextmanager
async def connected(
    url: str, era: Era, number: int = 0, token: str = ANNE, listener: Listener | None = None
) -> AsyncIterator[Client]:
    """A client each of whose requests may come to another replica.

    A token stays at one replica as long as it can, so each request is given as another spelling
    of it.
    """
    options: dict[str, Any] = {} if listener is None else listener.options()
    spellings = iter(range(number, 1 << 30))

    async def spell(request: httpx2.Request) -> None:
        request.headers["Authorization"] = f"Bearer {' ' * (next(spellings) % 7)}{token}"

    async with httpx2.AsyncClient(timeout=PATIENCE, event_hooks={"request": [spell]}) as inner:
        transport = streamable_http_client(url, http_client=inner)
        async with Client(transport, mode=era, **options) as client:
            yield client


async def run(client: Client, code: str, **more: Any) -> str:
    return text_of(await client.call_tool("execute_python", {"code": code, **more}))


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_every_answer_is_right(url: str, era: Era) -> None:
    async def talk(number: int) -> list[bool]:
        named = {"session_id": f"{era}-{number}"} if number % 2 or era == "auto" else {}
        async with connected(url, era, number) as client:
            await run(client, f"x = {number * 1000}", **named)
            return [
                str(number * 1000 + plus) in await run(client, f"x + {plus}", **named)
                for plus in range(4)
            ]

    answers = await asyncio.gather(*(talk(number) for number in range(CLIENTS)))
    assert all(all(right) for right in answers), answers
    async with connected(url, "auto") as client:
        for number in range(CLIENTS):
            if number % 2 or era == "auto":
                await client.call_tool("close_session", {"session_id": f"{era}-{number}"})


async def test_the_default_session_is_the_users_own_at_every_replica(url: str) -> None:
    async with connected(url, "auto") as anne, connected(url, "auto", token=BERT) as bert:
        await run(anne, "who = 'anne'")
        await run(bert, "who = 'bert'")
        for _ in range(4):
            assert "anne" in await run(anne, "who")
            assert "bert" in await run(bert, "who")


async def test_sessions_are_listed_and_closed_through_any_replica(url: str) -> None:
    async with connected(url, "auto") as client:
        for name in ("one", "two"):
            await run(client, "x = 1", session_id=name)
        for _ in range(4):
            listed = await client.call_tool("list_sessions", {})
            names = {each["session_id"] for each in listed.structured_content["sessions"]}
            assert {"one", "two"} <= names
        assert "has ended" in text_of(
            await client.call_tool("close_session", {"session_id": "one"})
        )
        assert "NameError" in await run(client, "x", session_id="one")
        for name in ("one", "two"):
            await client.call_tool("close_session", {"session_id": name})


async def test_a_question_is_answered_at_whichever_replica(url: str) -> None:
    listener = Listener()
    async with connected(url, "auto", listener=listener) as client:
        code = "import subprocess; print(subprocess.run(['echo', 'yes']).returncode)"
        for number in range(6):
            assert "0" in await run(client, f"{code}  # {number}")
    assert len(listener.asked) >= 6


async def test_a_user_has_32_sessions_in_all_of_the_cluster(url: str) -> None:
    async with connected(url, "auto", token=BERT) as client:
        await run(client, "1")
        names = [f"many-{number}" for number in range(31)]
        for name in names:
            assert "you have 32" not in await run(client, "1", session_id=name)
        for _ in range(3):
            assert "you have 32 sessions" in await run(client, "1", session_id="one-more")
        for name in names:
            await client.call_tool("close_session", {"session_id": name})


async def test_without_a_token_nothing_is_answered(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        answer = await client.post(url, json={}, headers={"Accept": "application/json"})
        assert answer.status_code == 401
        health = await client.get(url.replace("/mcp", "/healthz"))
        assert json.loads(health.text) == {"status": "ok"}


def test_arguments_are_checked_and_no_tokens_are_refused(tmp_path: Path) -> None:
    need("ray")
    from divingbell.errors import ConfigError
    from divingbell.scale import serve as ours

    with pytest.raises(ConfigError, match="there is no argument 'token'"):
        ours.Arguments.of({"token": "secret"})
    with pytest.raises(ConfigError, match="replicas=many: this takes a number"):
        ours.Arguments.of({"replicas": "many"})
    with pytest.raises(ConfigError, match="name the folder"):
        ours.datasets({})
    assert ours.Arguments.of({"no_token": "true", "most": "3"}) == ours.Arguments(
        no_token=True, most=3
    )
