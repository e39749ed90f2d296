"""Streams: events as Server-Sent Events, for a reader who may leave at any time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.types import Message, Receive, Scope, Send

from divingbell.surfaces.http import visitor
from divingbell.surfaces.http.answers import head
from divingbell.surfaces.http.event_log import Entry
from divingbell.surfaces.http.quotas import share_of

MEDIA_TYPE = "text/event-stream"
EVENT, BYTE = 0.00004, 0.000000002
"""Seconds of processor time that an event is taken to cost, and each byte of it. Measured: 40 µs,
most of them in the write."""
COMMENT = b":\n\n"


class Stream:
    """A stream of events, as an application. It ends early with the token that its reader has.
    `left` is called where the reader does not stay to the end."""

    def __init__(
        self, entries: AsyncGenerator[Entry | None, None], left: Callable[[], None] = lambda: None
    ) -> None:
        self._entries = entries
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(head(200, MEDIA_TYPE, {"X-Accel-Buffering": "no"}))
        sending = asyncio.ensure_future(self._send_all(scope, send))
        leaving = asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                self._left()
            elif (error := sending.exception()) is not None:
                raise error
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait((sending, leaving))

    async def _send_all(self, scope: Scope, send: Send) -> None:
        """Send all events at the pace of a share of the user: as long as the client takes them,
        nothing else would make those wait that are there already."""
        pace = share_of(scope).pace
        cost = 0.0
        async with aclosing(self._entries) as entries:
            async for entry in entries:
                if not visitor.holds(scope):
                    self._left()
                    break
                part = COMMENT if entry is None else entry.frame()
                await send(_part(part))
                cost += EVENT + BYTE * len(part)
                if cost >= pace.slice:
                    rest, cost = pace.charge(cost), 0.0
                    await asyncio.sleep(rest)
        await send({"type": "http.response.body", "body": b""})


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def gone(receive: Receive) -> None:
    """Return once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
