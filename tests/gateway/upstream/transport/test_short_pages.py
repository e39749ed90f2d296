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
from divingbell.gateway.upstream.transport.short_pages import (
    LARGEST_ITEM,
    MOST_BLOCKS,
    MOST_ITEMS,
    MOST_RESTS,
    shortened,
)
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


async def test_a_cursor_of_ours_that_is_not_known_never_reaches_the_server() -> None:
    line = Line()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        await write.send(request(1, "divingbell:forged"))
        answer = (await read.receive()).message
        assert line.asked == [] and answer.id == 1 and "ask for it again" in answer.error.message


async def test_two_lists_at_once_do_not_know_of_each_other() -> None:
    line, methods = Line(), ("resources/list", "prompts/list")
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        cursors: dict[str, Any] = {}
        for number, method in enumerate(methods):
            await write.send(request(number, method=method))
            name = method.partition("/")[0]
            line.answer(number, **{name: [{"name": f"{name} {at}"} for at in range(250)]})
            cursors[method] = (await read.receive()).message.result["nextCursor"]
        for number in range(10, 14):
            method = methods[number % 2]
            await write.send(request(number, cursors[method], method))
            result = (await read.receive()).message.result
            cursors[method] = result.get("nextCursor")
            [name] = [key for key in result if key != "nextCursor"]
            assert method.startswith(name) and result[name][0]["name"].startswith(name)
        assert cursors == dict.fromkeys(methods) and len(line.asked) == 2


async def test_what_stands_beside_a_list_is_not_handed_on_with_each_page() -> None:
    tools = [tool(number) for number in range(2 * MOST_ITEMS)]
    found, _ = await pages(tools, _meta={str(number): [1] for number in range(1_000)}, ttlMs=5)
    assert all(set(page) <= {"tools", "nextCursor", "ttlMs"} for page in found)


async def test_lists_that_nobody_reads_to_their_end_are_given_up() -> None:
    line, cursors = Line(), list[str]()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        for number in range(MOST_RESTS + 1):
            await write.send(request(number))
            line.answer(number, tools=[tool(at) for at in range(MOST_ITEMS + 1)])
            cursors.append((await read.receive()).message.result["nextCursor"])
        await write.send(request(1_000, cursors[0]))
        assert "given up" in (await read.receive()).message.error.message
        await write.send(request(1_001, cursors[-1]))
        assert len((await read.receive()).message.result["tools"]) == 1
        assert len(read._rests) < MOST_RESTS


async def test_an_answer_whose_number_is_a_text_is_cut_as_well() -> None:
    line = Line()
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, write):
        await write.send(request(3))
        line.answer("3", tools=[tool(number) for number in range(MOST_ITEMS + 1)])  # type: ignore[arg-type]
        assert len((await read.receive()).message.result["tools"]) == MOST_ITEMS


@pytest.mark.parametrize("has_value", [True, False])
async def test_a_result_of_many_blocks_is_one_text_or_refused(has_value: bool) -> None:
    line = Line()
    blocks = [{"type": "text", "text": str(at)} for at in range(MOST_BLOCKS + 1)]
    value = {"structuredContent": {"result": list(range(MOST_BLOCKS + 1))}} if has_value else {}
    async with asyncio.timeout(PATIENCE), shortened(opened(line)) as (read, _):
        line.answer(1, content=[*blocks, {"type": "image", "data": ""}], **value)
        message = (await read.receive()).message
        if has_value:
            text, image = message.result["content"]
            assert text["text"].split("\n") == [block["text"] for block in blocks]
            assert image["type"] == "image" and "structuredContent" in message.result
        else:
            assert "too many" in message.error.message


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
