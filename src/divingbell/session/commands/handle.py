"""A command as its user has it."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager

from divingbell.command import CommandEvent, CommandResult
from divingbell.session.base import CommandHandle
from divingbell.session.commands.command import Command
from divingbell.text import one_line

SHOWN = 60
"""Characters of a command in its short form."""


class LocalCommandHandle(CommandHandle):
    """A command of this process, in the hands of one of those who use it."""

    def __init__(self, running: Command, using: Callable[[], AbstractContextManager[None]]) -> None:
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
        return isinstance(other, LocalCommandHandle) and self._running is other._running

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
