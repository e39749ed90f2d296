"""The maker of a call at the other end of a line: told of progress, and asked on its behalf."""

import asyncio
import contextlib
import itertools
from typing import Any

import mcp_types
from pydantic import TypeAdapter

from divingbell.errors import DivingbellError
from divingbell.scale.gateway import wire
from divingbell.scale.line import Message, Stream
from divingbell.session.intake import field_of


class LineCaller:
    """A caller whose replica is at the other end of a stream (divingbell.gateway.callers.Caller).

    Messages wait until the replica has read those before: a caller that reads nothing keeps no more
    than its window, and `Questions` drops the rest.
    """

    def __init__(self, stream: Stream, session: str | None) -> None:
        self.session = session
        self._stream = stream
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[bytes]] = {}

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        told = wire.Progress(progress=progress, total=total, message=message)
        await self._tell("progress", told)

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        await self._tell("log", params)

    async def elicit(self, params: mcp_types.ElicitRequestParams) -> Any:
        return await self._ask("elicit", params, wire.ELICITED)

    async def sample(self, params: mcp_types.CreateMessageRequestParams) -> Any:
        return await self._ask("sample", params, wire.SAMPLED)

    def answered(self, message: Message) -> None:
        """Take the answer of a question."""
        number = field_of(message.header, "answer", int, 0)
        asked = self._asked.get(number)
        if asked is not None and not asked.done():
            asked.set_result(message.body)

    async def _tell(self, kind: str, value: Any) -> None:
        with contextlib.suppress(DivingbellError):  # the call is over, and nobody listens
            await self._stream.send({"told": kind}, await wire.written(value))

    async def _ask(self, kind: str, params: Any, answer: TypeAdapter[Any]) -> Any:
        number = next(self._numbers)
        asked = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._stream.send({"ask": kind, "number": number}, await wire.written(params))
            return await wire.read(answer, await asked)
        finally:
            del self._asked[number]
            self._stream.tell({"do": "answered", "number": number})
