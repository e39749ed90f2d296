"""Streams of events: sent as fast as their reader takes them, and no faster than others allow."""

import asyncio
import contextlib
import itertools

from starlette.types import Message

from divingbell.surfaces.http import quotas, visitor
from divingbell.surfaces.http.event_log import EventLog
from divingbell.surfaces.http.streams import Stream
from tests.waiting import PATIENCE


async def test_many_events_that_are_there_already_leave_turns_to_others() -> None:
    log = EventLog()
    for number in range(4_000):
        log.add("n", number)
    log.close()
    sent: list[bytes] = []
    turns = itertools.count()

    async def others() -> None:
        while True:
            next(turns)
            await asyncio.sleep(0)

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))  # a client that takes everything at once

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    working = asyncio.create_task(others())
    scope = {quotas.KEY: quotas.Share(), visitor.AGAIN: lambda: visitor.EVERYBODY}
    async with asyncio.timeout(PATIENCE):
        await Stream(log.follow())(scope, receive, send)
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    assert b"".join(sent).count(b"event: n\n") == 4_000
    assert next(turns) > 100
