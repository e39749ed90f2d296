"""A session as its user has it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.gateway.context import Asker
from divingbell.gateway.functions.function import Tools
from divingbell.models import (
    Completion,
    Consumption,
    DataFormat,
    Event,
    FrameLibrary,
    Isolation,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.session import notebook
from divingbell.session.accounted import AccountedSession
from divingbell.session.base import CommandHandle, SessionHandle
from divingbell.session.files import Files


class Session(SessionHandle):
    """A session, in the hands of one of those who use it.

    Whoever opens a session has an object of their own, also where another has it open already:
    the two have the same `key`. So letting go of it twice is no more than letting go once.
    """

    files: Files

    def __init__(self, handle: AccountedSession, *, opened: bool = False) -> None:
        """`opened`: it was opened by whoever has it, and not only looked for."""
        self._seen = handle
        self._opened = opened
        self.id = handle.id
        self.limits = handle.limits
        self.files = handle.files

    def __repr__(self) -> str:
        return notebook.described(self)

    def _repr_html_(self) -> str:
        return notebook.table(repr(self), [self])

    @property
    def _handle(self) -> AccountedSession:
        """What does the work, for the loop that it belongs to; elsewhere it raises WrongLoop.

        What only looks uses `_seen`, from wherever.
        """
        self._seen.guard.check()
        return self._seen

    @property
    def principal(self) -> Principal:
        return self._seen.principal

    @property
    def key(self) -> str:
        return self._seen.key

    @property
    def labels(self) -> Mapping[str, str]:
        return self._seen.labels

    @property
    def isolation(self) -> Isolation:
        return self._seen.isolation

    @property
    def opened_at(self) -> float:
        return self._seen.opened_at

    @property
    def expires_at(self) -> float | None:
        return self._seen.expires_at

    def consumption(self) -> Consumption:
        return self._handle.consumption()

    @property
    def cells(self) -> int:
        return self._seen.cells

    @property
    def busy(self) -> bool:
        return self._seen.busy

    @property
    def closed(self) -> bool:
        return self._seen.closed

    @property
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""
        return self._seen.alive

    @property
    def last_used(self) -> float:
        """The time when it was last used, by `time.monotonic()`."""
        return self._seen.last_used

    @property
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        return self._seen.copied_cell

    @property
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""
        return self._seen.copy_refused

    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> Result:
        return await self._handle.run(
            code, timeout=timeout, context=context, argv=argv, asker=asker, tools=tools
        )

    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> AsyncGenerator[Event, None]:
        # Checked when it begins: that may be in another loop than the call.
        return self._seen.stream(
            code, timeout=timeout, context=context, argv=argv, asker=asker, tools=tools
        )

    @overload
    async def command(
        self,
        command: CommandLine,
        *,
        background: Literal[False] = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult: ...

    @overload
    async def command(
        self,
        command: CommandLine,
        *,
        background: Literal[True],
        **options: Unpack[CommandOptions],
    ) -> CommandHandle: ...

    async def command(
        self, command: CommandLine, *, background: bool = False, **options: Unpack[CommandOptions]
    ) -> CommandResult | CommandHandle:
        if background:
            return await self._handle.command(command, background=True, **options)
        return await self._handle.command(command, **options)

    def command_stream(
        self, command: CommandLine, **options: Unpack[CommandOptions]
    ) -> AsyncGenerator[CommandEvent, None]:
        return self._seen.command_stream(command, **options)  # checked when it begins, too

    def commands(self) -> list[CommandHandle]:
        return self._seen.commands()

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

    async def reveal(self, text: str) -> str:
        return await self._handle.reveal(text)

    def touch(self) -> None:
        """Count as used now, so that it does not end by being idle.

        Raises:
            SessionClosed: the session has ended.
        """
        self._handle.touch()

    async def close(self, reason: str = "it was closed") -> None:
        await self._handle.close(reason)
