"""A client of kernels that says what a test wants said, in both forms of framing."""

import asyncio
import contextlib
import itertools
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.waiting import PATIENCE

V1 = "v1.kernel.websocket.jupyter.org"
_numbers = itertools.count(1)


@dataclass
class Answered:
    """What came back for a request: the reply, and what was published for it."""

    reply: dict[str, Any]
    published: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of the messages of one kind."""
        return [each["content"] for each in self.published if each["msg_type"] == kind]

    @property
    def kinds(self) -> list[str]:
        return [each["msg_type"] for each in self.published]

    @property
    def text(self) -> str:
        return "".join(each["text"] for each in self.of("stream"))


def header(kind: str, number: str) -> dict[str, Any]:
    return {
        "msg_id": number,
        "msg_type": kind,
        "session": "of-the-test",
        "username": "somebody",
        "date": "2026-11-17T10:00:00.000000Z",
        "version": "5.4",
    }


def packed(channel: str, *parts: bytes) -> bytes:
    """A frame of the newer form."""
    pieces = [channel.encode(), *parts]
    at, offsets = 8 * (len(pieces) + 2), []
    for piece in pieces:
        offsets.append(at)
        at += len(piece)
    return struct.pack(f"<{len(offsets) + 2}Q", len(offsets) + 1, *offsets, at) + b"".join(pieces)


def unpacked(frame: bytes) -> dict[str, Any]:
    [count] = struct.unpack_from("<Q", frame)
    offsets = struct.unpack_from(f"<{count}Q", frame, 8)
    channel, *parts = [frame[start:end] for start, end in itertools.pairwise(offsets)]
    head, parent, metadata, content = [json.loads(part) for part in parts[:4]]
    return {
        "header": head,
        "msg_type": head["msg_type"],
        "parent_header": parent,
        "metadata": metadata,
        "content": content,
        "channel": channel.decode(),
    }


class Talker:
    """One WebSocket to a kernel."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._messages: list[dict[str, Any]] = []

    @property
    def is_v1(self) -> bool:
        return self.socket.subprotocol == V1

    async def send(
        self, kind: str, content: dict[str, Any] | None = None, channel: str = "shell"
    ) -> str:
        """Send a request; return its id."""
        number = f"request-{next(_numbers)}"
        head, content = header(kind, number), content or {}
        if self.is_v1:
            parts = [json.dumps(part).encode() for part in (head, {}, {}, content)]
            await self.socket.send(packed(channel, *parts))
        else:
            message = {"header": head, "parent_header": {}, "metadata": {}, "content": content}
            await self.socket.send(json.dumps(message | {"channel": channel}))
        return number

    async def next(self) -> dict[str, Any]:
        """Return the next message."""
        frame = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        if isinstance(frame, bytes):
            return unpacked(frame)
        message: dict[str, Any] = json.loads(frame)
        return message

    async def answer(self, number: str) -> Answered:
        """Return what comes for a request, up to its reply and the word that the kernel is idle."""
        replies: list[dict[str, Any]] = []
        published: list[dict[str, Any]] = []
        kept = []
        waiting = iter(self._messages)
        while not (replies and published and _is_idle(published[-1])):
            message = next(waiting, None) or await self.next()
            if message["parent_header"].get("msg_id") != number:
                kept.append(message)
            elif message["channel"] == "iopub":
                published.append(message)
            else:
                replies.append(message)
        self._messages = [*kept, *waiting]
        [reply] = replies
        return Answered(reply["content"], published)

    async def ask(
        self, kind: str, content: dict[str, Any] | None = None, channel: str = "shell"
    ) -> Answered:
        """Send a request, and return what comes for it."""
        return await self.answer(await self.send(kind, content, channel))

    async def run(self, code: str, **more: Any) -> Answered:
        """Run a cell."""
        return await self.ask("execute_request", {"code": code, **more})

    async def until(self, kind: str) -> dict[str, Any]:
        """Return the next message of a kind, whatever it belongs to; those before it are lost."""
        while (message := await self.next())["msg_type"] != kind:
            pass
        return message


@contextlib.asynccontextmanager
async def talking(
    url: str, kernel: str, token: str, subprotocol: str | None = None, **more: Any
) -> AsyncIterator[Talker]:
    """Open the channels of a kernel."""
    address = f"{url.replace('http', 'ws', 1)}/jupyter/api/kernels/{kernel}/channels?token={token}"
    asked: Any = [subprotocol] if subprotocol else None
    async with connect(address, subprotocols=asked, max_size=None, **more) as socket:
        yield Talker(socket)


def _is_idle(message: dict[str, Any]) -> bool:
    return bool(message["content"].get("execution_state") == "idle")
