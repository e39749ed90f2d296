"""Short pages: a long list of a server, handed to the SDK a part at a time.

The SDK takes each page of a list in one piece, checks it twice and makes objects of it, and nobody
else runs meanwhile. Measured: 2,000 tools in one page took 0.16 s, 100 take 8 ms. So a page that is
longer is cut here, and given a cursor of ours; when the SDK asks for what comes then, the server
need not be asked.
"""

import asyncio
import contextlib
import secrets
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from typing import Any

import mcp_types
from mcp.shared.message import SessionMessage

from divingbell import logs
from divingbell.gateway.schema.outcome import TOO_MANY_VALUES
from divingbell.gateway.upstream.transport import departure
from divingbell.gateway.upstream.transport.streams import ReadStream, Stream

log = logs.logger("divingbell.gateway")

MOST_ITEMS = 100
MOST_PARTS = 5_000
"""Values within the items of a page: the SDK takes about a millisecond for a thousand."""
LARGEST_ITEM = 25_000
"""Values within one item; a larger one is left out of its list."""
LONGEST_LIST = 10_000
"""Items of one page of a server; nobody reads more of a list."""
MOST_RESTS = 32
"""Lists that are cut and not read to their end yet; the oldest is given up for another one."""
MOST_ASKED = 1_000
MOST_BLOCKS = 2_000
"""Blocks of a result: the SDK takes 13 µs for each of them."""
CURSOR = "divingbell:"
GIVEN_UP = "the list was given up, because others were asked for: ask for it again"
_LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
_BLOCKS = ("content", "contents", "messages")
_Streams = tuple[Any, Any]


@contextlib.asynccontextmanager
async def shortened(
    connection: contextlib.AbstractAsyncContextManager[_Streams],
) -> AsyncIterator[_Streams]:
    """Open a connection to a server, with its lists in short pages."""
    async with connection as (read, write):
        pages = _Pages(read)
        try:
            yield pages, _Asking(pages, write)
        finally:
            await pages.stop()


class _Rest:
    """The rest of a page that was cut."""

    def __init__(self, method: str, result: dict[str, Any]) -> None:
        self.method = method
        self._name = _LISTS[method]
        self._items: list[Any] = result[self._name][:LONGEST_LIST]
        # What else a page holds is small, or nobody reads it: it would be checked with each page.
        self._beside = {key: result[key] for key in result if _is_small(result[key])}
        self._at = 0

    def next(self, cursor: str) -> tuple[dict[str, Any], bool]:
        """Return a short page, and whether it was the last."""
        page = {**self._beside, self._name: self._some()}
        is_last = self._at >= len(self._items)
        if not is_last:
            page["nextCursor"] = cursor
        return page, is_last

    def _some(self) -> list[Any]:
        found: list[Any] = []
        room = MOST_PARTS
        while self._at < len(self._items) and len(found) < MOST_ITEMS:
            item = self._items[self._at]
            parts = _parts(item, LARGEST_ITEM)
            if parts >= LARGEST_ITEM:
                log.warning("one of the %s of a server is too large, and left out", self._name)
                room -= LARGEST_ITEM
            elif found and parts > room:
                break
            else:
                found.append(item)
                room -= parts
            self._at += 1
            if room < -LARGEST_ITEM:
                break
        return found


class _Pages(ReadStream):
    """The messages of a server, with its lists cut, and the rests of those that were."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._asked: OrderedDict[str, str] = OrderedDict()
        """Requests for lists that have no answer yet, by their number, and their methods."""
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        """By the cursor that asks for more."""
        self._own: deque[SessionMessage] = deque()
        self._answered = asyncio.Event()
        self._reading: asyncio.Task[SessionMessage] | None = None

    @property
    def last_context(self) -> Any:
        return getattr(self._read, "last_context", None)

    def asks(self, item: SessionMessage) -> bool:
        """Take note of a request; return whether it is answered here."""
        message = item.message
        if not isinstance(message, mcp_types.JSONRPCRequest) or message.method not in _LISTS:
            return False
        cursor = (message.params or {}).get("cursor")
        if not isinstance(cursor, str) or not cursor.startswith(CURSOR):
            self._asked[str(message.id)] = message.method
            while len(self._asked) > MOST_ASKED:
                self._asked.popitem(last=False)
            return False
        rest = self._rests.pop(cursor, None)
        answer: mcp_types.JSONRPCResponse | mcp_types.JSONRPCError
        if rest is None or rest.method != message.method:
            error = mcp_types.ErrorData(code=mcp_types.INVALID_PARAMS, message=GIVEN_UP)
            answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
        else:
            page = self._next(rest)
            answer = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=page)
        self._own.append(SessionMessage(answer))
        self._answered.set()
        return True

    async def receive(self) -> Any:
        if not self._rests and not self._own and self._reading is None:
            return self._cut(await self._read.receive())
        while not self._own:
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._read.receive())
            self._answered.clear()
            answered = asyncio.ensure_future(self._answered.wait())
            try:
                await asyncio.wait({self._reading, answered}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                answered.cancel()
            if self._reading.done():
                reading, self._reading = self._reading, None
                return self._cut(reading.result())
        return self._own.popleft()

    def _cut(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        if isinstance(message, mcp_types.JSONRPCError):
            self._asked.pop(str(message.id), None)
        if not isinstance(message, mcp_types.JSONRPCResponse):
            return item
        # The SDK takes "3" for 3.
        method = self._asked.pop(str(message.id), None)
        if method is not None and isinstance(message.result.get(_LISTS[method]), list):
            page = self._next(_Rest(method, message.result))
            answer = message.model_copy(update={"result": page})
            return SessionMessage(answer, item.metadata)
        for name in _BLOCKS:
            blocks = message.result.get(name)
            if isinstance(blocks, list) and len(blocks) > MOST_BLOCKS:
                return SessionMessage(_with_fewer_blocks(message, name), item.metadata)
        return item

    def _next(self, rest: _Rest) -> dict[str, Any]:
        # Another each time: a list that comes back to a cursor is taken to have no end.
        cursor = f"{CURSOR}{secrets.token_hex(8)}"
        page, is_last = rest.next(cursor)
        if not is_last:
            self._rests[cursor] = rest
            while len(self._rests) > MOST_RESTS:
                self._rests.popitem(last=False)
        return page

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._reading = None

    async def aclose(self) -> None:
        await self._read.aclose()


class _Asking(Stream):
    """The messages to a server, without those that are answered here."""

    def __init__(self, pages: _Pages, write: Any) -> None:
        self._pages = pages
        self._write = write

    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, mcp_types.JSONRPCRequest):
            await departure.allowed()
        if not self._pages.asks(item):
            await self._write.send(item)

    async def aclose(self) -> None:
        await self._write.aclose()


def _with_fewer_blocks(
    message: mcp_types.JSONRPCResponse, name: str
) -> mcp_types.JSONRPCResponse | mcp_types.JSONRPCError:
    """A result whose blocks of text are one, where its value says the same; else an error.

    Python's SDK sends a block for each item of a list, beside the list as a value.
    """
    blocks = message.result[name]
    others = [block for block in blocks if not _is_text(block)]
    if "structuredContent" not in message.result or len(others) >= MOST_BLOCKS:
        error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=TOO_MANY_VALUES)
        return mcp_types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
    text = "\n".join(block["text"] for block in blocks if _is_text(block))
    result = {**message.result, name: [{"type": "text", "text": text}, *others]}
    return message.model_copy(update={"result": result})


def _is_text(block: Any) -> bool:
    is_text = isinstance(block, dict) and block.get("type") == "text"
    return is_text and isinstance(block.get("text"), str)


def _is_small(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) < 10_000)


def _parts(value: Any, most: int) -> int:
    """Return how many values there are in a value, counted up to `most`."""
    count, left = 0, [value]
    while left and count < most:
        item = left.pop()
        count += 1
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
    return min(count + len(left), most)
