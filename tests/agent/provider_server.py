"""A real HTTP server that streams replies in the formats of Anthropic, OpenAI and Google.

OpenAI has two: chat completions, which many servers speak, and responses, which is its own.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.waiting import PATIENCE, until

SIGNATURE = "c2lnbmVk"
"""What a provider wants back with the thoughts of its model."""
Lines = AsyncIterator[bytes]
Fault = Callable[[Request], Response]


@dataclass
class Say:
    """A reply: thoughts, text, then code in a call of execute_python."""

    text: str = ""
    code: str | None = None
    ends: bool = True
    """False: the connection ends before the reply does."""
    thinking: str = ""
    arguments: str | None = None
    """What the call has in the place of its arguments, as JSON or what is none."""
    stop: Literal["", "length", "refused"] = ""
    """Why the provider ends it, where it is not whole: too long, or not allowed."""

    @property
    def written(self) -> str:
        """The arguments of its call, as they are written."""
        return json.dumps({"code": self.code}) if self.arguments is None else self.arguments


@dataclass
class ProviderServer:
    """What it will say, and what it was sent."""

    says: list[Say | Fault] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _take(self, request: Request, stream: Callable[[Say], Lines]) -> Response:
        self.bodies.append(await request.body())
        self.headers.append(dict(request.headers))
        say = self.says.pop(0)
        if not isinstance(say, Say):
            return say(request)
        return StreamingResponse(stream(say), media_type="text/event-stream")

    async def anthropic(self, request: Request) -> Response:
        return await self._take(request, _anthropic)

    async def openai(self, request: Request) -> Response:
        return await self._take(request, _openai)

    async def responses(self, request: Request) -> Response:
        return await self._take(request, _responses)

    async def google(self, request: Request) -> Response:
        return await self._take(request, _google)


def _event(data: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


async def _anthropic(say: Say) -> Lines:
    def event(kind: str, **data: Any) -> bytes:
        return _event({"type": kind, **data}, kind)

    usage = {"input_tokens": 50, "output_tokens": 1, "cache_read_input_tokens": 40}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    block: dict[str, Any]
    yield event("message_start", message=message)
    index = 0
    if say.thinking:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(say.thinking):
            delta = {"type": "thinking_delta", "thinking": piece}
            yield event("content_block_delta", index=index, delta=delta)
        delta = {"type": "signature_delta", "signature": SIGNATURE}
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    if say.text:
        block = {"type": "text", "text": ""}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(say.text):
            delta = {"type": "text_delta", "text": piece}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    if say.code is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": "execute_python", "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(say.written):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=index, delta=delta)
            if not say.ends:
                return
        yield event("content_block_stop", index=index)
    if not say.ends:
        return
    whole = "end_turn" if say.code is None else "tool_use"
    reason = {"": whole, "length": "max_tokens", "refused": "refusal"}[say.stop]
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 12})
    yield event("message_stop")


async def _openai(say: Say) -> Lines:
    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(
            {
                "id": "c1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "local",
                "choices": [choice],
                **more,
            }
        )

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(say.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(say.text):
        yield chunk({"content": piece})
    if say.code is not None:
        called: dict[str, Any] = {"name": "execute_python", "arguments": ""}
        call: dict[str, Any] = {"index": 0, "id": "call_1", "type": "function", "function": called}
        yield chunk({"tool_calls": [call]})
        for piece in _pieces(say.written):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
            if not say.ends:
                return
    if not say.ends:
        return
    usage = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}
    whole = "stop" if say.code is None else "tool_calls"
    reason = {"": whole, "length": "length", "refused": "content_filter"}[say.stop]
    yield chunk({}, reason, usage=usage)
    yield b"data: [DONE]\n\n"


async def _responses(say: Say) -> Lines:
    numbers = itertools.count()

    def event(kind: str, **data: Any) -> bytes:
        return _event({"type": kind, "sequence_number": next(numbers), **data}, kind)

    def response(status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5.5",
            "status": status,
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **more,
        }

    where: dict[str, Any]
    yield event("response.created", response=response("in_progress"))
    place = 0
    if say.thinking:
        thought: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
        yield event("response.output_item.added", output_index=place, item=thought)
        where = {"item_id": "rs_1", "output_index": place, "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        yield event("response.reasoning_summary_part.added", **where, part=part)
        for piece in _pieces(say.thinking):
            yield event("response.reasoning_summary_text.delta", **where, delta=piece)
        yield event("response.reasoning_summary_text.done", **where, text=say.thinking)
        part = {**part, "text": say.thinking}
        yield event("response.reasoning_summary_part.done", **where, part=part)
        done = {**thought, "summary": [part], "encrypted_content": SIGNATURE}
        yield event("response.output_item.done", output_index=place, item=done)
        place += 1
    if say.text:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        where = {"item_id": "msg_1", "output_index": place, "content_index": 0}
        added = {**item, "status": "in_progress"}
        yield event("response.output_item.added", output_index=place, item=added)
        for piece in _pieces(say.text):
            yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
        yield event("response.output_text.done", **where, text=say.text, logprobs=[])
        text = {"type": "output_text", "text": say.text, "annotations": []}
        done = {**item, "status": "completed", "content": [text]}
        yield event("response.output_item.done", output_index=place, item=done)
        place += 1
    if say.code is not None:
        call = {"id": "fc_1", "type": "function_call", "call_id": "call_1"}
        call |= {"name": "execute_python", "arguments": ""}
        yield event("response.output_item.added", output_index=place, item=call)
        arguments = say.written
        where = {"item_id": "fc_1", "output_index": place}
        for piece in _pieces(arguments):
            yield event("response.function_call_arguments.delta", **where, delta=piece)
            if not say.ends:
                return
        yield event("response.function_call_arguments.done", **where, arguments=arguments)
        done = {**call, "arguments": arguments, "status": "completed"}
        yield event("response.output_item.done", output_index=place, item=done)
    if not say.ends:
        return
    usage: dict[str, Any] = {"input_tokens": 50, "output_tokens": 12, "total_tokens": 62}
    usage["input_tokens_details"] = {"cached_tokens": 40}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    if not say.stop:
        yield event("response.completed", response=response("completed", usage=usage))
        return
    why = {"reason": {"length": "max_output_tokens", "refused": "content_filter"}[say.stop]}
    ended = response("incomplete", usage=usage, incomplete_details=why)
    yield event("response.incomplete", response=ended)


async def _google(say: Say) -> Lines:
    def chunk(parts: list[dict[str, Any]], reason: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        usage = {"promptTokenCount": 50, "candidatesTokenCount": 12, "totalTokenCount": 62}
        return _event(
            {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}
        )

    reason = {"": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}[say.stop]
    for piece in _pieces(say.thinking):
        yield chunk([{"text": piece, "thought": True}])
    for piece in _pieces(say.text):
        yield chunk([{"text": piece}])
    if say.code is not None:
        # Its arguments are an object: of those that are broken nothing comes.
        arguments = {"code": say.code} if say.arguments is None else {}
        called = {"name": "execute_python", "args": arguments}
        yield chunk([{"functionCall": called}], reason if say.ends else None)
    elif say.ends:
        yield chunk([{"text": ""}], reason)


def status(code: int, body: str = "", media: str = "application/json", **headers: str) -> Fault:
    """A fault: an answer that is no reply."""
    return lambda _: PlainTextResponse(body, code, headers or None, media)


def hangs(seconds: float = 600) -> Fault:
    """A fault: a reply that begins and then says nothing more."""

    async def nothing() -> Lines:
        yield b": wait\n\n"
        await asyncio.sleep(seconds)

    return lambda _: StreamingResponse(nothing(), media_type="text/event-stream")


def stalls(text: str) -> Fault:
    """A fault: a reply that says nothing more after its first words."""

    async def half() -> Lines:
        async for piece in _openai(Say(text, ends=False)):
            yield piece
        await asyncio.sleep(600)

    return lambda _: StreamingResponse(half(), media_type="text/event-stream")


def pinging(_: Request) -> Response:
    """A fault: signs of life, for ever, and no word."""

    async def pings() -> Lines:
        while True:
            yield b": ping\n\n"
            await asyncio.sleep(0.02)

    return StreamingResponse(pings(), media_type="text/event-stream")


def breaks_off(_: Request) -> Response:
    """A fault: a reply whose connection is lost after its first words."""

    async def half() -> Lines:
        async for piece in _openai(Say("These are the first words", ends=False)):
            yield piece
        raise ConnectionResetError("lost")

    return StreamingResponse(half(), media_type="text/event-stream")


def raw(*pieces: bytes) -> Fault:
    """A fault: a stream with these bytes."""

    async def said() -> Lines:
        for piece in pieces:
            yield piece

    return lambda _: StreamingResponse(said(), media_type="text/event-stream")


@contextlib.contextmanager
def serving_beside() -> Iterator[ProviderServer]:
    """Serve in a thread of its own, for tests that wait for a command."""
    found: Future[ProviderServer] = Future()
    leaving = asyncio.Event()

    async def serve() -> None:
        async with serving() as server:
            loops.append(asyncio.get_running_loop())
            found.set_result(server)
            await leaving.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield found.result(PATIENCE)
    finally:
        loops[0].call_soon_threadsafe(leaving.set)
        thread.join()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[ProviderServer]:
    """Serve on a free port while the block lasts."""
    server = ProviderServer()
    app = Starlette(
        routes=[
            Route("/v1/messages", server.anthropic, methods=["POST"]),
            Route("/v1/chat/completions", server.openai, methods=["POST"]),
            Route("/v1/responses", server.responses, methods=["POST"]),
            Route("/{rest:path}", server.google, methods=["POST"]),
        ]
    )
    # With the protocol's name asyncio knows it for TCP, and no piece waits for an acknowledgement.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        server.port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        config.timeout_graceful_shutdown = 0
        running = uvicorn.Server(config)
        task = asyncio.create_task(running.serve(sockets=[listener]))
        await until(lambda: running.started, "the server starts")
        try:
            yield server
        finally:
            running.should_exit = True
            await task
