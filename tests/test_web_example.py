"""examples/web_service.py: sessions that last over requests, streams, and clients that leave."""

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from divingbell import Divingbell
from tests.waiting import until

EXAMPLE = Path(__file__).parents[1] / "examples" / "web_service.py"
ADA = {"x-user": "ada"}


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[httpx2.AsyncClient, Divingbell]]:
    """The example's service on a free port, and the Divingbell that it has made."""
    spec = importlib.util.spec_from_file_location("web_service", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    bell = Divingbell(pool=0, preload=())
    example.Divingbell = lambda: bell  # type: ignore[attr-defined]
    server = uvicorn.Server(uvicorn.Config(example.app, port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started, "the server starts")
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client, bell
    finally:
        server.should_exit = True
        await running


def events_of(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        kind, data = block.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


async def test_a_session_lasts_over_requests_and_is_its_users_own() -> None:
    async with serving() as (client, bell):
        await client.post("/sessions/web", content="x = 6 * 7", headers=ADA)
        answer = await client.post("/sessions/web", content="print(x)", headers=ADA)
        assert answer.headers["content-type"].startswith("text/event-stream")
        *shown, (last, result) = events_of(answer.text)
        assert ("stdout", "42\n") in shown
        assert (last, result["success"]) == ("done", True)
        other = await client.post("/sessions/web", content="x", headers={"x-user": "bob"})
        assert "NameError" in events_of(other.text)[-1][1]["error"]
        for headers in (ADA, {"x-user": "bob"}):
            assert (await client.delete("/sessions/web", headers=headers)).status_code == 204
        assert bell.get("web", user="ada") is None


async def test_what_is_refused_is_an_answer() -> None:
    async with serving() as (client, _):
        answer = await client.post(f"/sessions/{'x' * 1000}", content="1", headers=ADA)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


async def test_a_client_that_leaves_interrupts_its_cell() -> None:
    async with serving() as (client, bell):
        code = "import time\nprint('begun', flush=True)\ntime.sleep(1000)"
        async with client.stream("POST", "/sessions/gone", content=code, headers=ADA) as answer:
            async for line in answer.aiter_lines():
                if "begun" in line:
                    break
        session = bell.get("gone", user="ada")
        assert session is not None
        await until(lambda: not session.busy, "the cell is interrupted")
        answer = await client.post("/sessions/gone", content="1 + 1", headers=ADA)
        assert events_of(answer.text)[-1][1]["success"] is True
