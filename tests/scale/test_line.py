"""The line: what a hostile other side sends, and what a slow one costs."""

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from divingbell.errors import ConfigError, DivingbellError, InvalidInput, RateExceeded
from divingbell.models import Event
from divingbell.scale import forms, greeting, line, passing, tunnel
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.greeting import Callee
from divingbell.scale.line import Line, LineLost, Message, Stream
from divingbell_inside import frames
from tests.waiting import PATIENCE, until

SECRET = "s" * 64


class Listener:
    """A side that listens, and keeps what comes."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.asked: list[tuple[Stream, Message]] = []
        self.strangers: set[Callee] = set()
        self.port = 0

    def make(self) -> Line:
        made = Line("the caller", opens_odd=False)
        made.on_word = lambda at, message: at.tell({"op": "hello"})
        made.on_request = lambda at, stream, message: self.asked.append((stream, message))
        self.lines.append(made)
        return made

    @property
    def address(self) -> NodeAddress:
        return NodeAddress("far", "127.0.0.1", self.port, SECRET)

    async def line_to_it(self) -> Line:
        laid = Line("the listener", opens_odd=True)
        await greeting.call(self.address, laid, {})
        return laid


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    found = Listener()
    server = await asyncio.get_running_loop().create_server(
        lambda: Callee(SECRET, found.strangers, found.make), "127.0.0.1", 0
    )
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for each in found.lines:
            each.lose("the test has ended")


async def _asked(listener: Listener, number: int = 1) -> tuple[Stream, Message]:
    await until(lambda: len(listener.asked) >= number, "the request arrives")
    return listener.asked[number - 1]


async def test_a_request_is_answered_and_large_bodies_come_whole(listener: Listener) -> None:
    laid = await listener.line_to_it()
    body = random.Random(1).randbytes(5 << 20)
    sending = asyncio.create_task(laid.request_with({"op": "take"}, body))
    stream, message = await _asked(listener)
    assert message.header == {"op": "take"} and message.body == body
    await stream.end({"ok": True}, body[::-1])
    answer = await (await sending).receive()
    assert answer.header["ok"] is True and answer.body == body[::-1]
    assert not laid._streams and not listener.lines[0]._streams
    laid.close()


async def test_both_sides_may_ask(listener: Listener) -> None:
    laid = await listener.line_to_it()
    laid.on_request = lambda at, stream, message: stream.finish({"said": message.header["word"]})
    stream = listener.lines[0].request({"op": "ask", "word": "a"})
    assert (await stream.receive()).header["said"] == "a"
    laid.close()


async def test_errors_keep_their_kind(listener: Listener) -> None:
    laid = await listener.line_to_it()
    for number, error in enumerate((InvalidInput("bad"), RateExceeded("slow", 2.5)), 1):
        asked = laid.request({"op": "fail"})
        stream, _ = await _asked(listener, number)
        stream.fail(error)
        with pytest.raises(type(error), match=str(error)) as raised:
            await asked.receive()
        if isinstance(raised.value, RateExceeded):
            assert raised.value.retry_after == 2.5
    laid.close()


async def test_who_does_not_read_is_sent_no_more_than_a_window_and_others_go_on(
    listener: Listener,
) -> None:
    laid = await listener.line_to_it()
    slow = laid.request({"op": "slow"})
    stream, _ = await _asked(listener)
    sent = 0

    async def flood() -> None:
        nonlocal sent
        while True:
            await stream.send({}, bytes(1 << 16))
            sent += 1 << 16

    flooding = asyncio.create_task(flood())
    await until(lambda: sent >= line.WINDOW - (1 << 17), "it sends what there is room for")
    for number in range(50):
        quick = laid.request({"op": "quick"})
        (await _asked(listener, number + 2))[0].finish({"number": number})
        assert (await quick.receive()).header["number"] == number
    assert sent <= line.WINDOW + line.SLACK
    before = sent
    for _ in range(12):
        await slow.receive()
    await until(lambda: sent > before, "it goes on once it is read")
    flooding.cancel()
    laid.close()


async def test_a_line_that_breaks_is_told_to_all_who_wait(listener: Listener) -> None:
    laid = await listener.line_to_it()
    waiting = [asyncio.create_task(laid.request({"op": "wait"}).receive()) for _ in range(5)]
    await _asked(listener, 5)
    transport: Any = listener.lines[0]._transport
    transport.abort()
    for each in waiting:
        with pytest.raises(LineLost):
            await each
    with pytest.raises(LineLost):
        laid.request({"op": "more"})


def _frame(header: dict[str, Any], body: bytes = b"") -> bytes:
    return frames.pack(header, body)


_REQUEST = {"s": 1, "op": "x"}
HOSTILE: dict[str, Callable[[], bytes]] = {
    "no JSON": lambda: struct.pack("!II", 4, 0) + b"nope",
    "a list": lambda: struct.pack("!II", 2, 0) + b"[]",
    "no number": lambda: _frame({"op": "x"}),
    "a negative number": lambda: _frame({"s": -1, "op": "x"}),
    "a number that is true": lambda: _frame({"s": True, "op": "x"}),
    "a huge header": lambda: struct.pack("!II", line.MAX_HEADER + 1, 0),
    "a huge body": lambda: struct.pack("!II", 2, line.PIECE + 1),
    "all bits": lambda: b"\xff" * 64,
    "a heavy header": lambda: _frame({"s": 1, "op": "x", "v": [[]] * 20_000}),
    "an answer that nobody asked for": lambda: _frame({"s": 2, "end": True}),
    "a request twice": lambda: _frame(_REQUEST) * 2,
    "a credit of nothing": lambda: _frame(_REQUEST) + _frame({"s": 1, "credit": 0}),
    "a credit of everything": lambda: _frame(_REQUEST) + _frame({"s": 1, "credit": 1 << 60}),
    "a duplicate key": lambda: struct.pack("!II", 13, 0) + b'{"s":1,"s":2}',
    "no credit": lambda: _frame(_REQUEST) + _frame({"s": 1}, bytes(line.PIECE)) * 20,
    "no credit for headers": lambda: (
        _frame(_REQUEST) + _frame({"s": 1, "words": "x" * 60_000}) * 25
    ),
    "without end": lambda: (
        _frame({"s": 1, "more": True}, bytes(line.PIECE)) * (line.MAX_MESSAGE // line.PIECE + 1)
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_who_breaks_a_rule_loses_the_line(listener: Listener, kind: str) -> None:
    laid = await listener.line_to_it()
    far = listener.lines[0]
    laid._next_number = 99  # what it answers is none of our business here
    transport: Any = laid._transport
    transport.write(HOSTILE[kind]())
    await until(lambda: far.lost, "the line is given up")
    assert "broke the rules" in str(far.lost)
    other = await listener.line_to_it()  # all else goes on
    before = len(listener.asked)
    asked = other.request({"op": "fine"})
    await until(lambda: len(listener.asked) > before, "it is asked")
    listener.asked[-1][0].finish({"yes": True})
    assert (await asked.receive()).header["yes"] is True
    other.close()
    laid.lose("the test has ended")


async def test_a_frame_that_is_cut_waits_for_its_rest_and_no_more(listener: Listener) -> None:
    laid = await listener.line_to_it()
    transport: Any = laid._transport
    whole = _frame(_REQUEST, b"body")
    for at in range(0, len(whole), 5):
        transport.write(whole[at : at + 5])
        await asyncio.sleep(0)
    _, message = await _asked(listener)
    assert message.body == b"body"
    transport.write(whole[:10])
    transport.abort()
    await until(lambda: listener.lines[0].lost, "the line has ended")
    assert len(listener.asked) == 1


async def test_random_bytes_are_no_frames(listener: Listener) -> None:
    for seed in range(30):
        laid = await listener.line_to_it()
        transport: Any = laid._transport
        transport.write(random.Random(seed).randbytes(4096))
        far = listener.lines[-1]
        await until(lambda far=far: far.lost, "the line is given up")  # type: ignore[misc]
        laid.lose("the test has ended")


# The greeting


async def test_a_wrong_secret_is_not_heard(listener: Listener) -> None:
    wrong = NodeAddress("far", "127.0.0.1", listener.port, "t" * 64)
    with pytest.raises(LineLost, match="does not know the secret"):
        await greeting.call(wrong, Line("the listener", opens_odd=True), {})
    assert not listener.lines


async def test_a_proof_that_was_overheard_is_of_no_use(listener: Listener) -> None:
    heard: list[bytes] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    nonce = bytes(greeting.NONCE)
    writer.write(greeting.MAGIC + nonce)
    theirs = await reader.readexactly(greeting.NONCE + greeting.PROOF)
    proof = greeting._proof(SECRET, b"front", nonce, theirs[: greeting.NONCE])
    heard += [greeting.MAGIC + nonce, proof]
    writer.write(proof)
    await until(lambda: listener.lines, "it is believed")
    again, replayed = await asyncio.open_connection("127.0.0.1", listener.port)
    replayed.write(heard[0] + heard[1])
    await again.readexactly(greeting.NONCE + greeting.PROOF)
    assert await again.read() == b""  # it hangs up
    assert len(listener.lines) == 1
    for each in (writer, replayed):
        each.close()


@pytest.mark.parametrize(
    "first",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4, b"\x00" * 4096, _frame(_REQUEST) * 9],
)
async def test_a_stranger_is_not_parsed(
    listener: Listener, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greeting, "TIMEOUT", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(first)
    with contextlib.suppress(ConnectionError):
        await reader.read()  # until it hangs up
    assert not listener.lines
    await until(lambda: not listener.strangers, "nothing of it is kept")
    writer.close()


async def test_strangers_are_counted_and_keep_nobody_out(listener: Listener) -> None:
    waiting = []
    for _ in range(greeting.MAX_STRANGERS):
        waiting.append(await asyncio.open_connection("127.0.0.1", listener.port))
    await until(lambda: len(listener.strangers) == greeting.MAX_STRANGERS, "all wait")
    laid = await listener.line_to_it()
    assert len(listener.strangers) < greeting.MAX_STRANGERS
    with contextlib.suppress(ConnectionError):
        assert await waiting[0][0].read() == b""  # who has waited longest makes room
    for _, each in waiting:
        each.close()
    await until(lambda: not listener.strangers, "they have gone")
    laid.close()


async def test_a_call_that_is_given_up_leaves_no_line(listener: Listener) -> None:
    def silent() -> Line:
        made = Line("the caller", opens_odd=False)
        listener.lines.append(made)
        return made

    listener.make = silent  # type: ignore[method-assign]
    calling = asyncio.create_task(listener.line_to_it())
    await until(lambda: listener.lines, "the line is laid, and no hello comes")
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await until(lambda: listener.lines[0].lost, "it is hung up")


async def test_a_line_that_nobody_wants_is_hung_up(listener: Listener) -> None:
    def unwanted() -> Line:
        made = Line("the caller", opens_odd=False)
        made.lose("there are too many")
        return made

    listener.make = unwanted  # type: ignore[method-assign]
    with pytest.raises(LineLost):
        await listener.line_to_it()


@pytest.mark.parametrize("word", ["\ud800", "ж" * line.MAX_HEADER])
async def test_a_text_that_no_header_takes_costs_only_who_sends_it(
    listener: Listener, word: str
) -> None:
    laid = await listener.line_to_it()
    with pytest.raises(InvalidInput):
        laid.request({"op": "ask", "word": word})
    with pytest.raises(InvalidInput):
        await laid.request_with({"op": "ask", "word": word}, b"")
    assert not laid._streams
    asked = laid.request({"op": "ask", "word": "ж😀"})
    stream, message = await _asked(listener)
    assert message.header["word"] == "ж😀"
    stream.fail(InvalidInput(f"bad {word}"))
    with pytest.raises(InvalidInput, match="bad"):
        await asked.receive()
    laid.close()


async def test_a_long_request_that_is_given_up_is_held_nowhere(listener: Listener) -> None:
    laid = await listener.line_to_it()
    far = listener.lines[0]
    for _ in range(3):
        sending = asyncio.create_task(laid.request_with({"op": "take"}, bytes(8 << 20)))
        async with asyncio.timeout(PATIENCE):
            while not far._held:  # noqa: ASYNC110 (seen before the last of it is there)
                await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await until(lambda: not far._streams, "it is let go")
        assert not far._held and not far._theirs and not laid._streams
    assert not listener.asked
    laid.close()


async def test_who_waits_for_a_full_line_is_not_overtaken_by_its_own_number(
    listener: Listener,
) -> None:
    laid = await listener.line_to_it()
    laid.pause_writing()  # as the transport does when the other side reads slowly
    waiting = asyncio.create_task(laid.request_with({"op": "first"}, b"body"))
    await asyncio.sleep(0)
    laid.request({"op": "second"})
    await _asked(listener)
    laid.resume_writing()
    await waiting
    await _asked(listener, 2)
    assert {message.header["op"] for _, message in listener.asked} == {"first", "second"}
    assert laid.lost is None and listener.lines[0].lost is None
    laid.close()


async def test_what_is_too_long_costs_only_who_sends_it(listener: Listener) -> None:
    laid = await listener.line_to_it()
    with pytest.raises(InvalidInput, match="more than pass"):
        await laid.request_with({"op": "take"}, bytes(line.MAX_MESSAGE + 1))
    asked = laid.request({"op": "ask"})
    stream, _ = await _asked(listener)
    with pytest.raises(InvalidInput, match="more than pass"):
        await stream.end({}, bytes(line.MAX_MESSAGE + 1))
    stream.fail(InvalidInput("too long"))
    with pytest.raises(InvalidInput, match="too long"):
        await asked.receive()
    assert laid.lost is None
    laid.close()


async def test_what_can_not_be_taken_costs_the_line(listener: Listener) -> None:
    def fails(at: Line, message: Message) -> None:
        raise OverflowError

    laid = await listener.line_to_it()
    listener.lines[0].on_word = fails
    laid.tell({"op": "word"})
    await until(lambda: laid.lost, "both sides know")
    assert listener.lines[0].lost


async def test_who_listens_in_a_nodes_place_learns_nothing() -> None:
    came = bytearray()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.extend(await reader.readexactly(len(greeting.MAGIC) + greeting.NONCE))
        writer.write(bytes(greeting.NONCE + greeting.PROOF))
        came.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(pretend, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        address = NodeAddress("far", "127.0.0.1", port, SECRET)
        with pytest.raises(LineLost, match="is not the node far"):
            await greeting.call(address, Line("the node far", opens_odd=True), {})
    assert len(came) == len(greeting.MAGIC) + greeting.NONCE and SECRET.encode() not in came


def test_a_line_over_a_network_needs_tls() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        greeting.check_walls(host, None)
    for host in ("10.0.0.1", "0.0.0.0", "example.com", "fe80::1"):
        with pytest.raises(ConfigError, match="in the clear"):
            greeting.check_walls(host, None)


def test_versions_that_differ_are_named() -> None:
    ours = greeting.versions()
    assert greeting.difference(ours) == ""
    words = greeting.difference({**ours, "divingbell": "0.0.1"})
    assert "Divingbell 0.0.1" in words and ours["divingbell"] in words
    assert "Python" in greeting.difference({**ours, "python": "3.9"})
    for nothing in (None, [], "x", json.loads("{}")):
        assert "unknown" in greeting.difference(nothing)


async def test_events_leave_in_messages_that_are_read_at_once(listener: Listener) -> None:
    laid = await listener.line_to_it()
    asked = laid.request({"op": "run"})
    stream, _ = await _asked(listener)
    events = passing.Events(stream)
    for number in range(1_001):
        events.take(Event("stdout", str(number)))
    await events.all_left(stream)
    stream.finish({})
    found: list[str] = []
    while "json" in (message := await asked.receive()).header:
        items, _ = forms.parsed(*message)
        assert len(items) <= passing.AT_ONCE
        found += [item["text"] for item in items]
    assert found == [str(number) for number in range(1_001)]
    laid.close()


async def _events_in(asked: Stream) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not (message := await asked.receive()).header.get("end"):
        found += forms.parsed(*message)[0]
    return found


async def test_of_events_that_nobody_reads_the_oldest_go_and_it_is_said(listener: Listener) -> None:
    laid = await listener.line_to_it()
    laid.request({"op": "run"})
    stream, _ = await _asked(listener)
    events = passing.Events(stream)
    listener.lines[0].lose("it broke")
    piece = "x" * 1_000
    for number in range(20_000):
        events.take(Event("stdout", f"{number} {piece}", cell=7))
        if number % 100 == 0:
            await asyncio.sleep(0)
        assert events._waiting_bytes <= passing.MAX_WAITING + 2 * len(piece)
    again = (await listener.line_to_it()).request({"op": "outcome"})
    stream, _ = await _asked(listener, 2)
    with pytest.raises(frames.FrameError):
        events.again(stream, 10_000)
    events.again(stream, 0)
    passing_on = asyncio.create_task(events.all_left(stream))
    passing_on.add_done_callback(lambda _: stream.finish({}))
    found = await _events_in(again)
    await passing_on
    [cut] = [event for event in found if event["type"] == "notice"]
    assert "pieces of output were more than is kept" in cut["text"] and cut["cell"] == 7
    shown = [int(event["text"].split()[0]) for event in found if event["type"] == "stdout"]
    # What had been made ready when the line broke, then what was kept.
    assert shown[-1] == 19_999 and len(shown) > 1_000
    kept = [number for number in shown if number > 200]
    assert kept == list(range(kept[0], 20_000))
    again.line.close()


async def test_what_a_front_must_have_is_not_kept(listener: Listener) -> None:
    laid = await listener.line_to_it()
    asked = laid.request({"op": "run"})
    stream, _ = await _asked(listener)
    events = passing.Events(stream)
    reading = asyncio.create_task(_events_in(asked))
    most = passing.IN_FLIGHT + passing.AT_ONCE * 20_000
    for _ in range(50):
        for _ in range(50):
            events.take(Event("stdout", "x" * 10_000))
        await asyncio.sleep(0)
        assert events._bytes <= most
    await events.all_left(stream)
    assert passing.IN_FLIGHT <= events._bytes <= most
    stream.finish({})
    assert len(await reading) == 2_500
    laid.close()


async def test_the_last_words_of_a_side_that_has_gone_come_through_a_tunnel(
    listener: Listener,
) -> None:
    laid = await listener.line_to_it()
    asked = laid.request({"op": "files"})
    stream, _ = await _asked(listener)
    ours, theirs = socket.socketpair()
    asked.tell({"piece": True}, b"of a file")
    await until(lambda: stream._messages, "it is there")
    theirs.send(b"refused")
    theirs.close()  # so nothing can be written to it any more
    stream.line.pause_writing()  # and what it said can't leave just now
    carrying = asyncio.create_task(tunnel.carry(ours.detach(), stream, opened_here=False))
    for _ in range(5):
        await asyncio.sleep(0)
    stream.line.resume_writing()
    assert (await asked.receive()).body == b"refused"
    with pytest.raises(DivingbellError, match="the tunnel has ended"):
        await asked.receive()
    await carrying
    laid.close()
