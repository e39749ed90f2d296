"""Streams as the SDK wants the two ends of a connection: each is a context that closes it."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import anyio


class Stream(ABC):
    """One end of a connection."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class ReadStream(Stream):
    """The end that the SDK reads: message by message, until there are no more."""

    @abstractmethod
    async def receive(self) -> Any:
        """Return the next message. Raises: anyio.EndOfStream after the last one."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
