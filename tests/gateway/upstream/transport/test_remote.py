"""Answers over HTTP: weighed as they come, a stream of events event by event."""

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.gateway.schema.outcome import TOO_MANY_VALUES
from divingbell.gateway.upstream.transport.remote import (
    AnswerTooLarge,
    CappedTransport,
    _CappedEvents,
    _CappedStream,
)
from divingbell.shares import weight
from divingbell.shares.allowance import Allowance, counted

HEAVY = b"[]," * 80_000
"""Most of what one message may weigh."""


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def read(stream: httpx2.AsyncByteStream) -> int:
    return sum([len(piece) async for piece in stream])


async def test_an_answer_of_too_many_values_is_cut_off() -> None:
    assert await read(_CappedStream(Pieces(b"[", HEAVY))) == len(HEAVY) + 1
    with pytest.raises(AnswerTooLarge, match="too many lists"):
        await read(_CappedStream(Pieces(b"[", HEAVY, HEAVY)))


@pytest.mark.parametrize("gap", [(b"\n\n",), (b"\r\n\r\n",), (b"\n", b"\n"), (b"\r\n", b"\r\n")])
async def test_each_event_is_weighed_for_itself(gap: tuple[bytes, ...]) -> None:
    event = (b"data: [", HEAVY, b"0]", *gap)
    await read(_CappedEvents(Pieces(*event * 5)))
    with pytest.raises(httpx2.SSEError, match=TOO_MANY_VALUES[:20]):
        await read(_CappedEvents(Pieces(b"data: [", HEAVY, b"\n", b"data: ", HEAVY, *gap)))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 3, 1 << 16])
@pytest.mark.parametrize("before", [b': "', b'id: "', b'event: "', b'data:"a"', b'datum: "', b'"'])
async def test_nothing_but_data_is_weighed(
    before: bytes, size: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.shares.weight.MAX_RESULT", 100)
    event = end.join([before, b"data: [" + b"[]," * 20 + b"0]", b"", b""])
    pieces = [event[start : start + size] for start in range(0, len(event), size)]
    with pytest.raises(httpx2.SSEError, match=TOO_MANY_VALUES[:20]):
        await read(_CappedEvents(Pieces(*pieces)))
    light = event.replace(b"data: [", b": [")
    await read(_CappedEvents(Pieces(*[light[n : n + size] for n in range(0, len(light), size)])))


@given(st.text('data: "[\\\r\n', max_size=60), st.lists(st.integers(1, 5), min_size=60))
def test_each_event_is_weighed_as_the_sdk_will_read_it(text: str, sizes: list[int]) -> None:
    weighed: list[int] = []
    stream, rest = Weighing(weighed), f"\n\n{text}\n\n".encode()
    for size in sizes:
        stream._weigh(rest[:size])
        rest = rest[size:]
    stream._weigh(rest)
    response = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, text=f"\n\n{text}\n\n",
        request=httpx2.Request("GET", "http://a"),
    )  # fmt: skip
    data = [event.data for event in httpx2.EventSource(response)]
    expected = [weight.weight_of(each.encode(), 10**9) for each in data]
    assert [each for each in weighed if each] == [each for each in expected if each]


class Weighing(_CappedEvents):
    """Writes down what each event weighs."""

    def __init__(self, weighed: list[int]) -> None:
        super().__init__(Pieces())
        self._weighed = weighed

    def _end_line(self) -> None:
        weight = self._scale.weight
        super()._end_line()
        if self._scale.weight < weight:
            self._weighed.append(weight)


async def test_events_are_read_as_what_was_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(*_: object) -> httpx2.Response:
        kind = {"content-type": "Text/Event-Stream; charset=utf-7"}
        return httpx2.Response(200, headers=kind, stream=Pieces(b"data: +AFs-+AF0-\n\n"))

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", answered)
    async with (
        httpx2.AsyncClient(transport=CappedTransport()) as client,
        client.stream("GET", "http://a") as response,
    ):
        events = [event.data async for event in httpx2.EventSource(response)]
    assert events == ["+AFs-+AF0-"]


async def test_answers_that_are_too_large_together_are_cut_off() -> None:
    allowance = Allowance(3_000_000)
    for _ in range(2):
        with counted(allowance):
            assert await read(_CappedStream(Pieces(b"x" * 10**6))) == 10**6
    with counted(allowance):
        await read(_CappedStream(Pieces(b"x" * 10**6)))
        with counted(allowance), pytest.raises(AnswerTooLarge, match="fewer calls at once"):
            await read(_CappedStream(Pieces(b"x" * 10**6)))


async def test_what_goes_to_a_server_is_sent_at_once() -> None:
    """With Nagle's algorithm the second piece of a request waits for an acknowledgement."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with (
            httpx2.AsyncClient(transport=CappedTransport()) as client,
            client.stream("GET", url) as response,
        ):
            line = response.extensions["network_stream"].get_extra_info("socket")
            assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
