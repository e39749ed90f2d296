"""Answers over HTTP: weighed as they come, a stream of events event by event."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from divingbell.allowance import Allowance, counted
from divingbell.gateway.outcome import TOO_MANY_VALUES
from divingbell.gateway.remote import AnswerTooLarge, _CappedEvents, _CappedStream

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


async def test_answers_that_are_too_large_together_are_cut_off() -> None:
    allowance = Allowance(3_000_000)
    for _ in range(2):
        with counted(allowance):
            assert await read(_CappedStream(Pieces(b"x" * 10**6))) == 10**6
    with counted(allowance):
        await read(_CappedStream(Pieces(b"x" * 10**6)))
        with counted(allowance), pytest.raises(AnswerTooLarge, match="fewer calls at once"):
            await read(_CappedStream(Pieces(b"x" * 10**6)))
