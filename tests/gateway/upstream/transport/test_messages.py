"""Messages over a pipe: none is parsed that is too large, and only whoever asked for it suffers."""

import asyncio
import contextlib
import gc
import json
from typing import Any

import mcp_types
import pytest

from divingbell.gateway.upstream.transport import messages, unanswered
from divingbell.gateway.upstream.transport.messages import Messages, Output
from divingbell.gateway.upstream.transport.unanswered import Unanswered
from divingbell.shares import weight
from divingbell.shares.allowance import Allowance, counted

HEAVY = '{"many":[' + "[]," * 200_000 + "[]]}"

PADDED = json.dumps({"x": "p" * 250, "jsonrpc": "2.0", "id": 7, "y": "p" * 250, "result": "RESULT"})
PADDED = PADDED.replace('"RESULT"', "RESULT").replace("}", ',"z":"' + "p" * 250 + '"}')


def answer(number: int, result: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'


def said(method: str, data: str, more: str = "") -> str:
    return f'{{"jsonrpc":"2.0",{more}"method":"{method}","params":{{"data":{data}}}}}'


class Pipe:
    """A connection, without the server at its other end."""

    def __init__(self) -> None:
        self.given_up: list[str] = []
        self.messages = Messages(asyncio.Event(), Unanswered(), self.given_up.append)
        self.output = Output(self.messages)

    def hear(self, *lines: str) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        for start in range(0, len(data), 1 << 16):
            self.output.data_received(data[start : start + (1 << 16)])

    async def next(self) -> Any:
        return (await self.messages.receive()).message


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":7,"result":HEAVY}', '{"id": 7, "result": HEAVY, "jsonrpc": "2.0"}',
        '{"result":HEAVY,"jsonrpc":"2.0","id":7}', '{ "result": HEAVY, "id": 7, "jsonrpc": "2.0"} ',
    ],
    ids=str,
)  # fmt: skip
async def test_an_answer_of_too_many_values_is_an_error_of_its_call(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    parse = messages._parsed
    monkeypatch.setattr(messages, "_parsed", lambda line: parsed.append(len(line)) or parse(line))
    pipe = Pipe()
    pipe.hear(line.replace("HEAVY", HEAVY), answer(8, "{}"))
    refused, after = await pipe.next(), await pipe.next()
    assert isinstance(refused, mcp_types.JSONRPCError) and refused.id == 7
    assert "too many lists" in refused.error.message
    assert isinstance(after, mcp_types.JSONRPCResponse) and after.id == 8
    assert sum(parsed) < 100 and pipe.given_up == []


async def test_a_line_that_is_too_heavy_is_always_a_large_one() -> None:
    assert weight.weight_of(b"[" * messages.LARGE_LINE, 10**9) <= weight.MAX_RESULT
    pipe = Pipe()
    pipe.hear(answer(7, "[" * 130_000))
    assert "too many lists" in (await pipe.next()).error.message


@pytest.mark.parametrize(
    "line",
    [said("x", HEAVY), said("x", '{"' + "x" * 10**6 + '":1}'), PADDED.replace("RESULT", HEAVY)],
    ids=["heavy", "long", "its number is out of sight"],
)
async def test_what_is_large_and_no_answer_ends_the_connection_unparsed(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_parsed", None)
    pipe = Pipe()
    pipe.hear(line)
    with pytest.raises(StopAsyncIteration):
        await anext(pipe.messages)
    assert pipe.given_up == [unanswered.TOO_LARGE]


async def test_an_answer_that_is_counted_for_one_call_is_not_that_of_another() -> None:
    pipe = Pipe()
    text = json.dumps({"text": "x" * 10**6})
    pipe.hear(f'{{"jsonrpc":"2.0","id":9,"result":{text},"id":7}}')
    with pytest.raises(StopAsyncIteration):
        await anext(pipe.messages)
    assert pipe.given_up == ["it sent a message with two ids"]


async def test_a_log_message_of_some_length_is_heard() -> None:
    pipe = Pipe()
    pipe.hear(said("notifications/message", json.dumps("x" * 200_000)))
    assert len((await pipe.next()).params["data"]) == 200_000


async def test_a_long_text_weighs_nothing_and_is_parsed_in_a_thread() -> None:
    pipe = Pipe()
    text = json.dumps({"text": "[]," * 2_000_000})
    pipe.hear(answer(7, text))
    assert len((await pipe.next()).result["text"]) == 6_000_000


async def test_nothing_is_collected_while_a_large_answer_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collecting: list[bool] = []
    parse = messages._parsed
    monkeypatch.setattr(
        messages, "_parsed", lambda line: collecting.append(gc.isenabled()) or parse(line)
    )
    pipe = Pipe()
    pipe.hear(answer(7, json.dumps({"rows": [{}] * 20_000})))
    assert len((await pipe.next()).result["rows"]) == 20_000
    assert collecting == [False] and gc.isenabled()


async def test_answers_that_are_too_large_together_are_errors_of_those_past_the_limit() -> None:
    pipe, allowance = Pipe(), Allowance(5_000_000)
    with contextlib.ExitStack() as under_way:
        for number in range(3):
            under_way.enter_context(counted(allowance))
            pipe.messages.expect(number)
            pipe.hear(answer(number, json.dumps({"text": "x" * 10**6})))
        first, second, third = [await pipe.next() for _ in range(3)]
        assert isinstance(first, mcp_types.JSONRPCResponse)
        assert isinstance(second, mcp_types.JSONRPCResponse)
        assert isinstance(third, mcp_types.JSONRPCError)
        assert "make fewer calls at once" in third.error.message
        assert 4_000_000 < allowance.held <= allowance.most
    assert allowance.held == 0


@pytest.mark.parametrize("method", ["notifications/message", "sampling/createMessage"])
@pytest.mark.parametrize(
    "data",
    ["[" + "[]," * 50_000 + "[]]", json.dumps("x" * (2 << 20)), json.dumps({"x" * (2 << 20): 1})],
    ids=["many", "long", "a long name"],
)
async def test_a_question_or_a_notification_that_is_far_too_large_ends_the_connection(
    method: str, data: str
) -> None:
    pipe = Pipe()
    assert weight.weight_of(data.encode(), 10**9) < weight.MAX_RESULT
    pipe.hear(said(method, data, '"id":1,'))
    with pytest.raises(StopAsyncIteration):
        await anext(pipe.messages)
    assert pipe.given_up == ["it sent a question or a notification that is far too large"]


@pytest.mark.parametrize("result", ["{}", '{"text":"' + "x" * messages.LARGE_LINE + '"}'], ids=len)
async def test_reading_an_answer_is_charged_to_whoever_waits_for_it(result: str) -> None:
    mine: list[float] = []
    theirs: list[float] = []
    pipe = Pipe()
    with counted(Allowance(1 << 30), mine.append):
        pipe.messages.expect(7)
        with counted(Allowance(1 << 30), theirs.append):
            pipe.messages.expect(8)
            pipe.hear(answer(7, result), said("notifications/message", "1"))
            assert (await pipe.next()).id == 7
            await pipe.next()
    assert len(mine) == 1 and mine[0] > 0 and theirs == []
