"""A session as its user has it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from divingbell.gateway.context import Asker
from divingbell.models import (
    Completion,
    DataFormat,
    Event,
    FrameLibrary,
    Isolation,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.session.base import SessionHandle
from divingbell.session.local import LocalSession


class Session(SessionHandle):
    """A session, in the hands of one of those who use it.

    Whoever opens a session has an object of their own, also where another has it open already:
    the two have the same `key`. So letting go of it twice is no more than letting go once.
    """

    def __init__(self, handle: LocalSession) -> None:
        self._handle = handle
        self.id = handle.id
        self.limits = handle.limits
        self.files = handle.files

    @property
    def principal(self) -> Principal:
        return self._handle.principal

    @property
    def key(self) -> str:
        return self._handle.key

    @property
    def isolation(self) -> Isolation:
        return self._handle.isolation

    @property
    def cells(self) -> int:
        return self._handle.cells

    @property
    def busy(self) -> bool:
        return self._handle.busy

    @property
    def closed(self) -> bool:
        return self._handle.closed

    @property
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""
        return self._handle.alive

    @property
    def last_used(self) -> float:
        """The time when it was last used, by `time.monotonic()`."""
        return self._handle.last_used

    @property
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        return self._handle.copied_cell

    @property
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""
        return self._handle.copy_refused

    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> Result:
        return await self._handle.run(
            code, timeout=timeout, context=context, argv=argv, asker=asker
        )

    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> AsyncGenerator[Event, None]:
        return self._handle.stream(code, timeout=timeout, context=context, argv=argv, asker=asker)

    async def interrupt(self) -> bool:
        return await self._handle.interrupt()

    async def reset(self) -> None:
        await self._handle.reset()

    async def variables(self) -> list[Variable]:
        return await self._handle.variables()

    async def set(self, name: str, value: Any, *, format: DataFormat | None = None) -> None:
        await self._handle.set(name, value, format=format)

    async def get(
        self,
        name: str,
        *,
        format: DataFormat | None = None,
        frame: FrameLibrary | None = None,
        most: int | None = None,
    ) -> Any:
        return await self._handle.get(name, format=format, frame=frame, most=most)

    async def complete(self, code: str, position: int) -> list[Completion]:
        return await self._handle.complete(code, position)

    async def close(self, reason: str = "it was closed") -> None:
        await self._handle.close(reason)
