"""Long lists of servers reach the SDK in short pages, and nothing of them is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.shared.message import SessionMessage

from divingbell.gateway.upstream.transport import short_pages
from divingbell.gateway.upstream.transport.short_pages import LARGEST_ITEM, MOST_ITEMS, shortened
from divingbell.settings.servers import Server
from tests import real_servers
from tests.gateway.upstreams import running
from tests.waiting import PATIENCE


class Line:
    """The server's end: what it was asked, and what it says."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.says: asyncio.Queue[SessionMessage | None] = asyncio.Queue()

    async def receive(self) -> SessionMessage:
        said = await self.says.get()
        if said is None:
            raise anyio.EndOfStream
        return said

    async def send(self, item: SessionMessage) -> None:
        self.asked.append(item.message)

    async def aclose(self) -> None: ...

    def answer(self, number: int, **result: Any) -> None:
        message = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=number, result=result)
        self.says.put_nowait(SessionMessage(message))


@contextlib.asynccontextmanager
async def opened(line: Line) -> AsyncIterator[tuple[Any, Any]]:
    yield line, line


def request(number: int, cursor: str | None = None, method: str = "tools/list") -> SessionMessage:
    params = {} if cursor is None else {"cursor": cursor}
    message = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params)
    return SessionMessage(message)


def tool(number: int, parts: int = 1) -> dict[str, Any]:
    return {"name": f"tool {number}", "inputSchema": {"enum": [0] * parts}}


async def pages(tools: list[Any], **more: Any) -> tuple[list[dict[str, Any]], Line]:
    """All pages that the SDK would get of one page of a server."""
    line, found = Line(), list[dict[str, Any]]()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        await write.send(request(1))
        line.answer(1, tools=tools, **more)
        found.append((await read.receive()).message.result)
        while (cursor := found[-1].get("nextCursor")) and cursor.startswith("divingbell:"):
            await write.send(request(len(found) + 1, cursor))
            found.append((await read.receive()).message.result)
    return found, line


async def test_a_long_list_comes_in_short_pages_and_the_server_is_asked_once() -> None:
    tools = [tool(number) for number in range(3 * MOST_ITEMS + 1)]
    found, line = await pages(tools, nextCursor="more", ttlMs=5)
    assert [len(page["tools"]) for page in found] == [MOST_ITEMS] * 3 + [1]
    assert [each for page in found for each in page["tools"]] == tools
    assert len(line.asked) == 1 and all(page["ttlMs"] == 5 for page in found)
    assert found[-1]["nextCursor"] == "more", "the server's own cursor comes with the last"


async def test_a_short_list_stays_as_it_is() -> None:
    found, _ = await pages([tool(1), tool(2)])
    assert found == [{"tools": [tool(1), tool(2)]}]


async def test_heavy_items_make_shorter_pages_and_one_that_is_too_heavy_is_left_out() -> None:
    tools = [tool(number, 2_000) for number in range(7)] + [tool(7, LARGEST_ITEM), tool(8)]
    found, _ = await pages(tools)
    assert [len(page["tools"]) for page in found][:2] == [2, 2]
    names = [each["name"] for page in found for each in page["tools"]]
    assert names == [f"tool {number}" for number in (*range(7), 8)]


@pytest.mark.parametrize("tools", [None, 5, "x", {}])
async def test_what_is_no_list_is_left_to_the_sdk(tools: Any) -> None:
    found, _ = await pages(tools)
    assert found == [{"tools": tools}]


async def test_messages_of_the_server_come_between_two_pages() -> None:
    line = Line()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        await write.send(request(1))
        line.answer(1, tools=[tool(number) for number in range(MOST_ITEMS + 1)])
        cursor = (await read.receive()).message.result["nextCursor"]
        line.answer(7, ok=True)
        assert (await read.receive()).message.id == 7
        reading = asyncio.ensure_future(read.receive())
        await asyncio.sleep(0)
        await write.send(request(2, cursor))
        assert (await reading).message.id == 2
        line.answer(8, ok=True)
        assert (await read.receive()).message.id == 8
        line.says.put_nowait(None)
        with pytest.raises(anyio.EndOfStream):
            await read.receive()


async def test_a_reader_that_leaves_between_two_pages_leaves_nothing_behind() -> None:
    line, before = Line(), len(asyncio.all_tasks())
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        await write.send(request(1))
        line.answer(1, tools=[tool(number) for number in range(MOST_ITEMS + 1)])
        await read.receive()
        reading = asyncio.ensure_future(read.receive())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
    assert len(asyncio.all_tasks()) == before


async def test_a_cursor_of_ours_that_is_not_known_goes_to_the_server() -> None:
    line = Line()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (_, write):
        await write.send(request(1, "divingbell:forged"))
        assert len(line.asked) == 1


async def test_a_real_server_with_many_tools_is_listed_whole(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_pages, "MOST_ITEMS", 3)
    command, arguments = real_servers.fixture("galley")
    async with running(Server("galley", command=command, args=tuple(arguments)), tmp_path) as one:
        await one.ready()
        names = {each.name for each in one.tools}
        assert len(names) > 9 and {"echo", "paint", "open"} <= names
        called = await one.call_tool("echo", {"text": "hi"})
        assert called.structured_content == {"result": "hi"}
