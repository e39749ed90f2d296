"""Short pages: a long list of a server, handed to the SDK a part at a time.

The SDK takes each page of a list in one piece, checks it twice and makes objects of it, and nobody
else runs meanwhile. Measured: 2,000 tools in one page took 0.16 s, 100 take 8 ms. So a page that is
longer is cut here, and given a cursor of ours; when the SDK asks for what comes then, the server
need not be asked.
"""

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import mcp_types
from mcp.shared.message import SessionMessage

from divingbell.gateway.upstream.transport.streams import ReadStream, Stream

log = logging.getLogger("divingbell.gateway")

MOST_ITEMS = 100
MOST_PARTS = 5_000
"""Values within the items of a page: the SDK takes about a millisecond for a thousand."""
LARGEST_ITEM = 50_000
"""Values within one item; a larger one is left out of its list."""
_LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
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

    def __init__(self, name: str, result: dict[str, Any]) -> None:
        self._name = name
        self._items: list[Any] = result[name]
        self._result = result
        self._at = 0

    def next(self, cursor: str) -> tuple[dict[str, Any], bool]:
        """Return a short page, and whether it was the last."""
        page = {**self._result, self._name: self._some()}
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
    """The messages of a server, with its lists cut, and the rest of the list that was cut last."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._asked: dict[int | str, str] = {}
        """Requests for lists that have no answer yet, and what the items are called there."""
        self._rest: _Rest | None = None
        self._cursor = ""
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
        if self._rest is not None and cursor == self._cursor:
            page = self._next(self._rest)
            answer = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=page)
            self._own.append(SessionMessage(answer))
            self._answered.set()
            return True
        self._asked[message.id] = _LISTS[message.method]
        return False

    async def receive(self) -> Any:
        if self._rest is None and not self._own and self._reading is None:
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
        if not isinstance(message, mcp_types.JSONRPCResponse):
            if isinstance(message, mcp_types.JSONRPCError) and message.id is not None:
                self._asked.pop(message.id, None)
            return item
        name = self._asked.pop(message.id, None)
        items = None if name is None else message.result.get(name)
        if name is None or not isinstance(items, list):
            return item
        answer = message.model_copy(update={"result": self._next(_Rest(name, message.result))})
        return SessionMessage(answer, item.metadata)

    def _next(self, rest: _Rest) -> dict[str, Any]:
        # Another each time: a list that comes back to a cursor is taken to have no end.
        self._cursor = f"divingbell:{secrets.token_hex(8)}"
        page, is_last = rest.next(self._cursor)
        self._rest = None if is_last else rest
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
        if not self._pages.asks(item):
            await self._write.send(item)

    async def aclose(self) -> None:
        await self._write.aclose()


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
