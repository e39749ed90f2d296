"""Clients that hang up: a message to the application, as ASGI has it, and no end of its task.

Ray Serve cancels what answers a request once its client has gone. A client of MCP closes a stream
as soon as it has its answer, so the cancellation would come into what is still being done for it:
a connection that was just opened would be thrown away again.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

GONE: Message = {"type": "http.disconnect"}


class Disconnects:
    """An application that hears `http.disconnect` where it would be cancelled."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        gone = asyncio.Event()

        async def heard() -> Message:
            if gone.is_set():
                return GONE
            asked = asyncio.ensure_future(receive())
            leaving = asyncio.ensure_future(gone.wait())
            try:
                await asyncio.wait({asked, leaving}, return_when=asyncio.FIRST_COMPLETED)
                return asked.result() if asked.done() else GONE
            finally:
                asked.cancel()
                leaving.cancel()

        async def sent(message: Message) -> None:
            if not gone.is_set():
                await send(message)

        task = asyncio.ensure_future(self._app(scope, heard, sent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.shield(task)
        finally:
            gone.set()
