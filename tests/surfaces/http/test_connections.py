"""Connections over HTTP that have not said who they are: few, and not for long."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.shares import host_time
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import connections, listening
from divingbell.surfaces.http.application import application
from divingbell.surfaces.http.connections import Protocol
from tests.surfaces.http.serving import Site
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


ASKED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = KNOWN.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked")
NO_REQUESTS = {
    "two lengths": KNOWN + b"Content-Length: 3\r\n\r\n" + b" " * 100,
    "a length and chunks": KNOWN + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a length with a sign": KNOWN.replace(b": 100", b": +100") + b"\r\n",
    "a space before the colon": ASKED + b"Content-Length : 3\r\n\r\nabc",
    "a line break alone": ASKED + b"X: y\nContent-Length: 3\r\n\r\nabc",
    "a header in two lines": ASKED + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no size": CHUNKED + b"\r\nx\r\n",
    "a chunk that is longer than it says": CHUNKED + b"\r\n1\r\nabc\r\n0\r\n\r\n",
    "another version": b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "another server's address": b"GET http://elsewhere/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": ASKED + b"X: " + b"x" * (2 * connections.MAX_HEAD),
    "a long name": ASKED + b"x" * (2 * connections.MAX_HEAD),
    "many headers": ASKED + b"X: y\r\n" * connections.MAX_HEAD,
    "a long line": b"GET /" + b"x" * (2 * connections.MAX_HEAD),
    "a long header behind chunks": CHUNKED + b"\r\n1\r\n{\r\n0\r\nX: " + b"x" * (1 << 18),
}


@pytest.mark.parametrize("sent", NO_REQUESTS.values(), ids=NO_REQUESTS)
async def test_what_others_could_read_in_another_way_is_no_request(
    site: Site, handled: list[str], sent: bytes
) -> None:
    """Nothing that stands behind it is taken for a request of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(sent + ASKED + b"\r\n")
    assert b"200 OK" not in await all_of(reader)
    assert "/healthz" not in handled
    writer.close()


async def test_headers_behind_a_body_are_not_taken_for_those_before_it(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    stranger = CHUNKED.replace(TOKEN.encode(), b"x" * 20)
    trailer = f"0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    writer.write(stranger + b"Connection: close\r\n\r\n1\r\n{\r\n" + trailer)
    assert (await all_of(reader)).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_whoever_is_refused_before_the_body_sends_no_second_request(site: Site) -> None:
    """It may send the body or leave it out, so nobody knows where the next request begins."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(HEAD + b"Expect: 100-continue\r\n\r\n" + ASKED + b"\r\n")
    answer = await all_of(reader)
    assert answer.startswith(b"HTTP/1.1 401 ") and answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer
    writer.close()


async def test_another_protocol_is_answered_and_ends_the_connection(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(ASKED + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + ASKED + b"\r\n")
    answer = await all_of(reader)
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1
    assert not caplog.records
    writer.close()


@pytest.mark.parametrize("size", [1, 7], ids=["a byte", "seven bytes"])
async def test_a_request_may_come_in_pieces(site: Site, size: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    sent = (ASKED + b"\r\n") * 2
    for start in range(0, len(sent), size):
        writer.write(sent[start : start + size])
        await asyncio.sleep(0)
    await answers(reader, 2)
    writer.close()


async def test_a_body_that_comes_on_is_waited_for(
    site: Site, anne: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set anew for each large piece of it, and for no less."""
    set_to: list[float | None] = []
    wait_before = Protocol._wait

    def wait(self: Protocol, seconds: float | None) -> None:
        set_to.append(seconds)
        wait_before(self, seconds)

    monkeypatch.setattr(Protocol, "_wait", wait)
    await anne.post("/api/v1/sessions", json={"id": "analysis"})
    set_to.clear()
    pieces, piece = 5, connections.BODY_PIECE
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    length = b"Content-Length: %d" % (pieces * piece + 1)
    path = b"/api/v1/sessions/analysis/files/large"
    head = KNOWN.replace(b"Content-Length: 100", length).replace(b"POST /mcp", b"PUT " + path)
    writer.write(head + b"\r\n" + b" " * piece * pieces)
    await until(lambda: set_to.count(connections.BODY_TIMEOUT) >= 3, "much of it is there")
    writer.write(b" ")
    async with asyncio.timeout(PATIENCE):
        assert (await reader.readline()).split()[1] in (b"200", b"201")
    assert set_to.count(connections.BODY_TIMEOUT) <= 1 + pieces
    writer.close()


async def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(
    site: Site, anne: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.1)
    path, size = "/api/v1/sessions/slow/files/large", 16 << 20
    await anne.post("/api/v1/sessions", json={"id": "slow"})
    assert (await anne.put(path, content=bytes(size))).status_code in (200, 201)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    with line:
        line.connect(("127.0.0.1", site.port))
        line.sendall(KNOWN.replace(b"POST /mcp", f"GET {path}".encode()) + b"\r\n" + b" " * 100)
        share = site.app.door.shares["anne"]
        await until(lambda: share.requests == 1, "it is asked for")
        await until(lambda: share.requests == 0, "it is given up")
        line.settimeout(PATIENCE)
        assert await asyncio.to_thread(_count, line) < size


def _count(line: socket.socket) -> int:
    """The bytes that come until the connection is closed."""
    count = 0
    try:
        while piece := line.recv(1 << 16):
            count += len(piece)
    except ConnectionError:
        pass
    return count
