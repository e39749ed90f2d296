"""A command that was started, as the session sees it and as its user has it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from divingbell.command import CommandEvent, CommandResult
from divingbell.session.base import CommandHandle
from divingbell.session.commands.output import StreamName
from divingbell.session.outcome import StopReason
from divingbell.text import one_line

SHOWN = 60
"""Characters of a command in its short form."""


class StartedCommand(Protocol):
    """A command that was started, wherever it runs."""

    number: int
    command: str
    began: asyncio.Future[None]
    """Done once it runs, or is over; raises InvalidInput where it can't run like this."""
    on_over: Callable[[CommandResult | None], None]
    """Called before anyone who waits goes on; with None where it broke off."""
    task: asyncio.Task[CommandResult]

    @property
    def pid(self) -> int | None: ...

    @property
    def running(self) -> bool: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def is_in_background(self) -> bool:
        """Whether it may take as much CPU time as it likes."""

    @property
    def drawn(self) -> float:
        """Seconds of this process that were spent on it."""

    def charge(self, seconds: float) -> None:
        """Count more of them."""

    def shown(self, name: StreamName) -> str:
        """Return the text of a stream so far, as its reader may see it."""

    async def wait(self) -> CommandResult: ...

    async def kill(self) -> CommandResult: ...

    def stream(self) -> AsyncGenerator[CommandEvent, None]: ...

    def stop(self, reason: StopReason) -> None:
        """Ask it to end; if that does not help in time, end it."""

    def lose(self, reason: str) -> None:
        """Take note of why it will be gone in a moment."""


class StartedHandle(CommandHandle):
    """A command that was started, in the hands of one of those who use it."""

    def __init__(
        self, running: StartedCommand, using: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.number = running.number
        self.command = running.command
        self._running = running
        self._using = using
        """Entered while somebody waits: it raises WrongLoop where the command is another loop's."""

    def __repr__(self) -> str:
        code = self.exit_code
        ended = "ended" if code is None else f"exit code {code}"
        state = "running" if self.running else ended
        return f"<Command {self.number} {one_line(self.command, SHOWN)!r}: {state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StartedHandle) and self._running is other._running

    def __hash__(self) -> int:
        return hash(self._running)

    @property
    def pid(self) -> int | None:
        return self._running.pid

    @property
    def running(self) -> bool:
        return self._running.running

    @property
    def exit_code(self) -> int | None:
        return self._running.exit_code

    @property
    def stdout(self) -> str:
        return self._running.shown("stdout")

    @property
    def stderr(self) -> str:
        return self._running.shown("stderr")

    async def wait(self) -> CommandResult:
        with self._using():
            return await self._running.wait()

    async def kill(self) -> CommandResult:
        with self._using():
            return await self._running.kill()

    async def stream(self) -> AsyncGenerator[CommandEvent, None]:
        with self._using():
            async with contextlib.aclosing(self._running.stream()) as events:
                async for event in events:
                    yield event
