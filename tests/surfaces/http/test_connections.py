"""Connections over HTTP that have not said who they are: few, and not for long."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from divingbell.shares import host_time
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import connections, listening
from divingbell.surfaces.http.application import application
from divingbell.surfaces.http.connections import Protocol
from tests.waiting import PATIENCE, until

TOKEN = "anne-has-a-long-token"
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
KNOWN = HEAD + f"Authorization: Bearer {TOKEN}\r\n".encode()


@pytest.fixture
async def port(bell: Divingbell) -> AsyncIterator[int]:
    listener, ready = listening.bound("127.0.0.1", 0), asyncio.Event()
    app = application(bell, Tokens({"anne": hash_of(TOKEN)}))
    serving = asyncio.create_task(listening.serve(app, listener, ready.set))
    await ready.wait()
    yield listener.getsockname()[1]
    serving.cancel()
    await asyncio.wait([serving])


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is closed."""
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


@pytest.mark.parametrize(
    ("clock", "sent", "answer"),
    [
        ("HEAD_TIMEOUT", b"", b""),
        ("HEAD_TIMEOUT", HEAD, b""),
        ("BODY_TIMEOUT", KNOWN + b"\r\n{", b""),
        ("REST_TIMEOUT", HEAD + b"\r\n{", b"HTTP/1.1 401 Unauthorized"),
    ],
    ids=["nothing", "half a head", "half a body", "half a body without a token"],
)
async def test_half_a_request_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch, clock: str, sent: bytes, answer: bytes
) -> None:
    monkeypatch.setattr(connections, clock, 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    assert (await all_of(reader)).split(b"\r\n")[0] == answer
    writer.close()


async def test_a_byte_now_and_then_does_not_keep_a_connection(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    closed = asyncio.create_task(all_of(reader))
    async with asyncio.timeout(PATIENCE):
        while not closed.done():
            writer.write(b"G")
            await asyncio.wait([closed], timeout=0.02)
    writer.close()


async def test_of_too_many_strangers_the_oldest_go(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_OF_PEER", 3)
    opened = []
    for _ in range(5):
        opened.append(await asyncio.open_connection("127.0.0.1", port))
        opened[-1][1].write(HEAD)
    for reader, _ in opened[:2]:
        assert await all_of(reader) == b""
    newest, writer = opened[-1]
    writer.write(b"\r\n" + b" " * 100)
    assert (await newest.readline()).split()[1] == b"401"
    for _, writer in opened:
        writer.close()


async def test_a_request_under_way_is_no_stranger(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_OF_PEER", 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(KNOWN + b"Expect: 100-continue\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"100"  # it is let in, its body is waited for
    strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    assert await all_of(strangers[0][0]) == b""
    writer.write(b" " * 100)
    assert (await reader.readline()) == b"\r\n"
    assert (await reader.readline()).startswith(b"HTTP/1.1 4")
    for _, each in (*strangers, (reader, writer)):
        each.close()


async def test_strangers_do_not_push_out_whoever_was_served(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_OF_PEER", 2)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(KNOWN + b"\r\n" + b" " * 100)
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head.lower())
            assert size is not None and b" 401 " not in head
            await reader.readexactly(int(size[1]))
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for stranger, _ in strangers[:3]:
            assert await all_of(stranger) == b""
        for _, each in strangers:
            each.close()
    writer.close()


async def test_what_is_no_request_leaves_no_line_in_the_log(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\0\r\n\r\n")
    assert b"400" in await all_of(reader)
    assert "Invalid" not in caplog.text
    writer.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_answers_are_sent_at_once(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """With Nagle's algorithm the second piece of an answer waits for an acknowledgement."""
    accepted: list[int] = []

    def made(self: Protocol, transport: asyncio.Transport) -> None:
        line = transport.get_extra_info("socket")
        accepted.append(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made_before(self, transport)

    made_before = Protocol.connection_made
    monkeypatch.setattr(Protocol, "connection_made", made)
    ready = asyncio.Event()
    with listening.bound(host, 0) as listener:
        app = application(bell, None)
        serving = asyncio.create_task(listening.serve(app, listener, ready.set))
        await ready.wait()
        _, writer = await asyncio.open_connection(host, listener.getsockname()[1])
        await until(lambda: bool(accepted), "the connection is there")
        writer.close()
        serving.cancel()
        await asyncio.wait([serving])
    assert accepted == [1]


PIPELINED = 40


async def answers(reader: asyncio.StreamReader, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head.lower())
            assert size is not None
            await reader.readexactly(int(size[1]))


REQUESTS = [
    pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="nothing there"),
    pytest.param(HEAD + b"\r\n" + b" " * 100, id="no token"),
    pytest.param(KNOWN + b"\r\n" + b" " * 100, id="a token"),
]


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of requests that were answered."""
    found: list[str] = []
    answered_before = Protocol.on_response_complete

    def answered(self: Protocol) -> None:
        found.append(self.scope["path"])
        answered_before(self)

    monkeypatch.setattr(Protocol, "on_response_complete", answered)
    return found


@pytest.mark.parametrize("request_sent", REQUESTS)
async def test_requests_that_come_in_one_go_wait_once_their_share_is_used_up(
    port: int, monkeypatch: pytest.MonkeyPatch, handled: list[str], request_sent: bytes
) -> None:
    monkeypatch.setattr(connections, "ANSWER", 10.0)
    monkeypatch.setattr(host_time, "LONGEST_REST", 3600.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_sent * PIPELINED)
    await answers(reader, 1)
    for _ in range(10):
        other, another = await asyncio.open_connection("127.0.0.1", port)
        another.write(KNOWN + b"\r\n" + b" " * 100)
        await answers(other, 1)
        another.close()
    assert len(handled) == 11
    writer.close()


@pytest.mark.parametrize("request_sent", REQUESTS)
async def test_requests_that_have_waited_are_answered_each(
    port: int, monkeypatch: pytest.MonkeyPatch, handled: list[str], request_sent: bytes
) -> None:
    monkeypatch.setattr(connections, "ANSWER", 10.0)
    monkeypatch.setattr(host_time, "LONGEST_REST", 0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_sent * PIPELINED)
    await answers(reader, PIPELINED)
    writer.write(request_sent)
    await answers(reader, 1)
    assert len(handled) == PIPELINED + 1
    writer.close()
