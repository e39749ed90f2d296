"""The end of `divingbell serve --http`, told to by signals, with a cell from each door."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
from mcp import Client
from mcp_types import CallToolResult

from divingbell.audit.reading import records
from tests.surfaces.http.jupyter.talking import Answered, Talker, talking
from tests.surfaces.http.serving import EVENTS, Heard, heard
from tests.surfaces.mcp.serving import Serving, serving
from tests.waiting import PATIENCE, until

API = "/api/v1"
ENDLESS = "while True: pass"


@dataclass
class Doors:
    """A client at each door, and what each has begun."""

    api: httpx2.AsyncClient
    mcp: Client
    jupyter: Talker
    by_api: "asyncio.Task[httpx2.Response]"
    by_mcp: "asyncio.Task[CallToolResult]"
    by_jupyter: "asyncio.Task[Answered]"
    by_stream: "asyncio.Task[list[Heard]]"


@contextlib.asynccontextmanager
async def _begun(served: Serving) -> AsyncIterator[Doors]:
    """Run a cell without an end by each door."""
    url = served.url.removesuffix("/mcp")
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=PATIENCE))
        mcp = await stack.enter_async_context(Client(served.url))
        made = await api.post("/jupyter/api/kernels", json={"name": "python3"})
        kernel = made.json()["id"]
        jupyter = await stack.enter_async_context(talking(url, kernel, "none"))
        by_api = api.post(f"{API}/sessions/by-api/execute", json={"code": ENDLESS})
        given = {"code": ENDLESS, "session_id": "by-mcp"}
        doors = Doors(
            api,
            mcp,
            jupyter,
            asyncio.create_task(by_api),
            asyncio.create_task(mcp.call_tool("execute_python", given)),
            asyncio.create_task(jupyter.run(ENDLESS)),
            asyncio.create_task(_followed(api)),
        )

        async def all_run() -> bool:
            listed = (await api.get(f"{API}/sessions")).json()["items"]
            return [each["state"] for each in listed] == ["running"] * 4

        await until(all_run, "four cells run")
        yield doors


async def _followed(api: httpx2.AsyncClient) -> list[Heard]:
    """Run a cell without an end, and read its events."""
    where = f"{API}/sessions/by-stream/execute"
    async with api.stream("POST", where, json={"code": ENDLESS}, headers=EVENTS) as answer:
        return [each async for each in heard(answer)]


def _config(folder: Path, seconds: float) -> str:
    path = folder / "divingbell.toml"
    path.write_text(
        f"pool = 0\ninterrupt_grace = 0.2\n[service]\ndrain_timeout = {seconds}\n"
        f'[audit_log]\nfolder = "{folder}/audit"\nheads = "{folder}/heads"\n'
    )
    return str(path)


async def test_cells_of_each_door_are_cancelled_delivered_and_recorded(tmp_path: Path) -> None:
    config = _config(tmp_path, 0.2)
    async with serving("--no-token", "--config", config) as served, _begun(served) as doors:
        children = _children(served.process.pid)
        served.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert (await doors.by_api).json()["status"] == "cancelled"
            told = (await doors.by_mcp).structured_content
            assert told is not None and told["status"] == "cancelled"
            assert (await doors.by_jupyter).reply["ename"] == "KeyboardInterrupt"
            last = (await doors.by_stream)[-1]
            assert (last.name, last.data["result"]["status"]) == ("done", "cancelled")
            assert await served.process.wait() == 143
    kept = [record for record in records(tmp_path / "audit") if "cell" in record]
    ends = [each["status"] for each in kept if each["kind"] == "execution.ended"]
    assert ends == ["cancelled"] * 4
    assert children and not [pid for pid in children if Path(f"/proc/{pid}").exists()]


async def test_nothing_new_begins_at_any_door_and_a_second_signal_ends_at_once(
    tmp_path: Path,
) -> None:
    config = _config(tmp_path, 3600)
    async with serving("--no-token", "--config", config) as served, _begun(served) as doors:
        children = _children(served.process.pid)
        served.process.send_signal(signal.SIGTERM)

        async def is_ending() -> bool:
            return (await doors.api.get("/readyz")).status_code == 503

        await until(is_ending, "it is not ready")
        refused = await doors.api.post(f"{API}/sessions/new/execute", json={"code": "1"})
        assert refused.status_code == 503 and refused.json()["code"] == "draining"
        result = await doors.mcp.call_tool("execute_python", {"code": "1"})
        assert result.is_error and "about to end" in str(result.content)
        made = await doors.api.post("/jupyter/api/kernels", json={"name": "python3"})
        async with talking(str(doors.api.base_url).rstrip("/"), made.json()["id"], "none") as other:
            reply = (await other.run("1")).reply
        assert reply["status"] == "error" and "about to end" in reply["evalue"]
        assert not doors.by_api.done() and not doors.by_mcp.done()
        assert not doors.by_jupyter.done() and not doors.by_stream.done()
        served.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await served.process.wait() == 143
        results = (doors.by_api, doors.by_mcp, doors.by_jupyter, doors.by_stream)
        for task in results:
            task.cancel()
        await asyncio.gather(*results, return_exceptions=True)
    assert children and not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def _children(pid: int) -> list[str]:
    """The processes that a process has started, from any of its threads."""
    tasks = [Path(f"/proc/{pid}/task/{task}/children") for task in os.listdir(f"/proc/{pid}/task")]
    return [child for task in tasks for child in task.read_text().split()]
