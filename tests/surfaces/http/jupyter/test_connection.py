"""Connections of clients that send too much, read too little, or are somebody else's."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from divingbell import Divingbell
from divingbell.surfaces.http.jupyter import connection, kernel
from divingbell.surfaces.http.jupyter.connection import Connection
from divingbell.surfaces.http.jupyter.framing import JsonFraming
from divingbell.surfaces.http.jupyter.kernels import Kernels
from divingbell.surfaces.http.jupyter.messages import Header, message
from divingbell.surfaces.http.queue import Queue, Room
from tests.surfaces.http.jupyter.conftest import Served
from tests.surfaces.http.jupyter.talking import Talker, header, packed, talking
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio
PARENT = Header("the-parent", "execute_request")


async def reason_of_end(talker: Talker) -> tuple[int, str]:
    """Wait until the server closes; return the code and the reason that it gives."""
    with pytest.raises(ConnectionClosed) as ended:
        while True:
            await asyncio.wait_for(talker.socket.recv(), PATIENCE)
    assert ended.value.rcvd is not None
    return ended.value.rcvd.code, ended.value.rcvd.reason


@pytest.mark.parametrize(
    "frame",
    [
        "no JSON",
        '{"header": {"msg_id": "a", "msg_type": "x"}, "content": ' + "[" * 100_000,
        b"\xff" * 100,
        packed("shell", b"{}", b"{}", b"{}", b"{}"),
    ],
    ids=["text", "nested", "bytes", "v1"],
)
async def test_what_is_no_message_ends_the_connection_with_the_reason(
    talker: Talker, frame: str | bytes
) -> None:
    await talker.socket.send(frame)
    code, reason = await reason_of_end(talker)
    assert code == connection.BAD_DATA and reason.startswith("this is no message: ")


async def test_a_message_of_64_megabytes_is_refused_before_it_is_parsed(talker: Talker) -> None:
    sending = asyncio.create_task(talker.socket.send("[" * (64 << 20)))
    code, _ = await reason_of_end(talker)
    assert code == connection.TOO_BIG
    await asyncio.gather(sending, return_exceptions=True)


async def test_a_content_of_another_kind_is_answered_in_words(talker: Talker) -> None:
    for content in ({"code": 1}, {}, {"code": "1", "silent": "no"}):
        reply = (await talker.ask("execute_request", content)).reply
        assert reply["ename"] == "BadMessage" and "execute_request" in reply["evalue"]
    for kind in ("complete_request", "is_complete_request"):
        assert (await talker.ask(kind, {"code": None})).reply["ename"] == "BadMessage"
    far_off = await talker.ask("complete_request", {"code": "x", "cursor_pos": -(10**30)})
    assert far_off.reply["cursor_start"] == 0


async def test_a_forged_parent_changes_nothing_about_the_answer(talker: Talker) -> None:
    forged = {
        "header": header("execute_request", "mine"),
        "parent_header": header("execute_request", "of-another"),
        "metadata": {"deletedCells": ["x"]},
        "content": {"code": "print('well')"},
        "channel": "shell",
    }
    await talker.socket.send(json.dumps(forged))
    answered = await talker.answer("mine")
    assert answered.text == "well\n"
    assert {each["parent_header"]["msg_id"] for each in answered.published} == {"mine"}


async def test_code_that_is_too_long_is_answered_in_words(talker: Talker) -> None:
    answered = await talker.run("#" * ((16 << 20) + 1))
    assert answered.reply["ename"] == "InvalidInput"


async def test_a_row_that_is_full_is_told(talker: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MAX_WAITING", 2)
    first = await talker.send("execute_request", {"code": "import time; time.sleep(0.5)"})
    await talker.until("execute_input")
    waiting = [await talker.send("execute_request", {"code": str(n)}) for n in range(3)]
    refused = await talker.until("execute_reply")
    assert refused["parent_header"]["msg_id"] == waiting[2]
    assert refused["content"]["ename"] == "TooManyRequests"
    del first
    assert (await talker.answer(waiting[1])).reply["status"] == "ok"


async def test_many_small_requests_let_others_have_their_turn(talker: Talker) -> None:
    """While hundreds are answered, the event loop comes round again and again."""
    numbers = [await talker.send("kernel_info_request") for _ in range(300)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    for number in numbers:
        await talker.answer(number)
    counting.cancel()
    assert turns >= 300


class Unread(WebSocket):
    """A client that reads nothing until it is told to."""

    def __init__(self) -> None:
        self.scope = {"type": "websocket"}  # no token that could end
        self.reads = asyncio.Event()
        self.told = asyncio.Event()
        self.sent: list[dict[str, Any]] = []

    async def send_text(self, data: str) -> None:
        await self.reads.wait()
        self.sent.append(json.loads(data))
        if self.sent[-1]["content"].get("name") == "stderr":
            self.told.set()

    async def receive(self) -> Any:
        await asyncio.Event().wait()


async def test_what_is_shown_is_left_out_for_a_slow_reader_and_the_rest_is_not(
    talker: Talker, bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_UNSENT", 1_000)
    slow = Unread()
    unread = Connection(slow, JsonFraming())
    writing = asyncio.create_task(unread._write())
    for number in range(50):
        unread.send(
            message("stream", "iopub", {"name": "stdout", "text": f"{number:0100}"}, PARENT)
        )
    unread.send(message("execute_reply", "shell", {"status": "ok"}, PARENT))
    assert len(unread._unsent) < 12
    slow.reads.set()
    async with asyncio.timeout(PATIENCE):
        await slow.told.wait()
    writing.cancel()
    assert "execute_reply" in [each["msg_type"] for each in slow.sent]
    shown = [each for each in slow.sent if each["content"].get("name") == "stdout"]
    told = slow.sent[-1]
    assert f"{50 - len(shown)} messages were left out here" in told["content"]["text"]
    assert told["parent_header"]["msg_id"] == "the-parent"


async def test_who_leaves_everything_unread_is_let_go(
    ada: Served, bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_UNSENT_MESSAGES", 100)
    name = await ada.kernel()
    session = bell.get(name, user="ada")
    assert session is not None
    kernels = Kernels(bell, Queue(Room()))
    opened = kernels.find(session.principal, name)
    assert opened is not None
    serving = asyncio.create_task(Connection(Unread(), JsonFraming()).serve(opened))
    await asyncio.sleep(0)
    for _ in range(200):
        opened.publish("status", {"execution_state": "idle"})
    await asyncio.wait_for(serving, PATIENCE)
    assert opened.model()["connections"] == 0


async def test_a_kernel_has_so_many_clients_and_no_more(
    ada: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "MAX_CLIENTS", 1)
    name = await ada.kernel()
    async with talking(ada.url, name, ada.token) as first:
        with pytest.raises(InvalidStatus) as refused:
            async with talking(ada.url, name, ada.token):
                pass
        assert refused.value.response.status_code == 429
        assert (await first.run("1")).reply["status"] == "ok"


async def test_sockets_count_among_what_a_user_has_under_way(bob: Served) -> None:
    """A hundred at once; the next one is refused."""
    names = [await bob.kernel() for _ in range(4)]
    async with AsyncExitStack() as held:
        for at in range(100):
            await held.enter_async_context(talking(bob.url, names[at // 32], bob.token))
        with pytest.raises(InvalidStatus):
            await held.enter_async_context(talking(bob.url, names[3], bob.token))


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1.evil.example", "null"]
)
async def test_a_web_page_of_another_origin_opens_nothing(ada: Served, origin: str) -> None:
    name = await ada.kernel()
    with pytest.raises(InvalidStatus) as refused:
        async with talking(ada.url, name, ada.token, origin=origin):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "the-token-of-bob-0001"])
async def test_no_kernel_is_opened_without_its_users_token(ada: Served, token: str) -> None:
    name = await ada.kernel()
    with pytest.raises(InvalidStatus) as refused:
        async with talking(ada.url, name, token):
            pass
    assert refused.value.response.status_code in (403, 404)
