"""A call is made ready while its record is written, and leaves after that."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell.errors import NotRecorded
from divingbell.gateway.upstream.transport import departure, remote, short_pages, stdio
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.gateway.upstream.upstream import Upstream
from divingbell.settings.servers import Server
from tests.gateway.upstreams import free_port, listening, running, web_server
from tests.waiting import until

SERVER = str(Path(__file__).parents[4] / "bench" / "tool_server.py")
TRANSPORTS = ["stdio", "http"]


class Held:
    """The wait for a record that the test ends."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> None:
        self.began.set()
        await asyncio.shield(self.kept)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Calls of tools that went to the pipe or the socket."""
    found: list[bytes] = []
    write, post = stdio.Writer.send, remote.CappedTransport.handle_async_request

    async def written(self: stdio.Writer, item: Any, /) -> None:
        found.append(item.message.model_dump_json().encode())
        await write(self, item)

    async def posted(self: remote.CappedTransport, request: httpx2.Request) -> httpx2.Response:
        found.append(await request.aread())
        return await post(self, request)

    monkeypatch.setattr(stdio.Writer, "send", written)
    monkeypatch.setattr(remote.CappedTransport, "handle_async_request", posted)
    return found


def _calls(left: list[bytes], word: str) -> int:
    return sum(b"tools/call" in each and word.encode() in each for each in left)


@contextlib.asynccontextmanager
async def _connected(transport: str, folder: Path) -> AsyncIterator[Upstream]:
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            server = Server("bench", command=sys.executable, args=(SERVER,))
        else:
            port = free_port()
            command = (sys.executable, [SERVER, f"--port={port}"])
            stack.enter_context(web_server(command, dict(os.environ)))
            await listening(port)
            server = Server("bench", url=f"http://127.0.0.1:{port}/mcp", transport="http")
        upstream = await stack.enter_async_context(running(server, folder))
        await upstream.ready()
        yield upstream


def _call(upstream: Upstream, word: str, held: Held) -> "asyncio.Task[Any]":
    calling = upstream.call_tool("echo", {"text": word}, departure=Departure(held))
    return asyncio.create_task(calling)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_does_not_leave_before_its_record_is_kept(
    transport: str, tmp_path: Path, left: list[bytes]
) -> None:
    async with _connected(transport, tmp_path) as upstream:
        held = Held()
        task = _call(upstream, "held", held)
        await until(held.began.is_set, "it wants to leave")
        await upstream.call_tool("echo", {"text": "another"})  # which is not held up by it
        assert (_calls(left, "another"), _calls(left, "held")) == (1, 0) and not task.done()
        held.kept.set_result(None)
        await task
        assert _calls(left, "held") == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_can_not_be_recorded_never_leaves(
    transport: str, tmp_path: Path, left: list[bytes]
) -> None:
    async with _connected(transport, tmp_path) as upstream:
        held = Held()
        held.kept.set_exception(NotRecorded("the disk is full"))
        with pytest.raises(NotRecorded, match="full"):
            await _call(upstream, "held", held)
        await upstream.call_tool("echo", {"text": "another"})
        assert _calls(left, "held") == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_is_cancelled_while_it_is_held_never_leaves(
    transport: str, tmp_path: Path, left: list[bytes]
) -> None:
    async with _connected(transport, tmp_path) as upstream:
        held = Held()
        task = _call(upstream, "held", held)
        await until(held.began.is_set, "it wants to leave")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.kept.set_result(None)
        await upstream.call_tool("echo", {"text": "another"})
        assert _calls(left, "held") == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_connection_that_does_not_wait_is_noticed(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once() -> None: ...

    monkeypatch.setattr(short_pages.departure, "allowed", at_once)
    assert departure.allowed is at_once
    async with _connected(transport, tmp_path) as upstream:
        with pytest.raises(NotRecorded, match="left before"):
            await _call(upstream, "held", Held())
