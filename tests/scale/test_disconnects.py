"""An application whose client hangs up goes on, and hears of it."""

import asyncio
from typing import Any

import pytest

from divingbell.scale.disconnects import GONE, Disconnects


class Slow:
    """Answers at once, and has something to do afterwards."""

    def __init__(self) -> None:
        self.answered, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.heard: list[Any] = []
        self.done = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.heard.append(await receive())
        await send({"type": "http.response.start"})
        self.answered.set()
        await self.may_go_on.wait()
        self.heard += [await receive(), await receive()]
        await send({"type": "http.response.body"})
        self.done.set()


class Client:
    """One that has sent its request, and whose connection stays as it is."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.waiting = asyncio.Event()
        self._first = True

    async def receive(self) -> Any:
        if self._first:
            self._first = False
            return {"type": "http.request"}
        self.waiting.set()
        await asyncio.Event().wait()

    async def send(self, message: Any) -> None:
        self.sent.append(message["type"])


@pytest.mark.parametrize("listens", [False, True], ids=["while it works", "while it listens"])
async def test_who_hangs_up_is_heard_and_cancels_nothing(listens: bool) -> None:
    app, client = Slow(), Client()
    around = Disconnects(app)
    request = asyncio.create_task(around({"type": "http"}, client.receive, client.send))
    await app.answered.wait()
    if listens:
        app.may_go_on.set()
        await client.waiting.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    app.may_go_on.set()
    async with asyncio.timeout(10):
        await app.done.wait()
    assert app.heard == [{"type": "http.request"}, GONE, GONE]
    assert client.sent == ["http.response.start"]


async def test_an_error_of_the_application_is_its_own() -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("it failed")

    client = Client()
    with pytest.raises(ValueError, match="it failed"):
        await Disconnects(fails)({"type": "http"}, client.receive, client.send)
