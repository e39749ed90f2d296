"""The commands of one session: they run beside its cells, a few at a time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

from divingbell.border.border import Border, Charge, Passage
from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.errors import CapacityError, InvalidInput
from divingbell.journal.events import CommandEnded, CommandStarted
from divingbell.journal.journal import Journal
from divingbell.principal import Principal
from divingbell.session.base import CommandHandle
from divingbell.session.cancelling import see_through
from divingbell.session.commands.command import END_PATIENCE, Exit, Sink
from divingbell.session.commands.handle import StartedCommand, StartedHandle
from divingbell.session.commands.request import CommandRequest, requested, text_of
from divingbell.session.hints import Hints
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.spool import FINISH_TIMEOUT
from divingbell_inside import frames

MAX_COMMANDS = 8
"""Commands of one session at once. Each takes a process of the session besides its own."""


class Owner(Protocol):
    """The session that the commands belong to."""

    last_used: float

    @property
    def guard(self) -> LoopGuard: ...

    @property
    def principal(self) -> Principal: ...

    @property
    def key(self) -> str: ...

    def admit(self, kind: Literal["cell", "command"]) -> None:
        """Count an execution that begins now.

        Raises:
            RateExceeded: its user has used up a rate.
        """

    async def start_command(
        self,
        number: int,
        text: str,
        request: CommandRequest,
        background: bool,
        sink: Sink,
        exit: Exit,
    ) -> StartedCommand:
        """Start a command that was admitted and written down. In the background only a timeout of
        its own limits its time.

        Raises:
            SessionClosed: the session has ended.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
        """


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The parts that commands of all sessions share."""

    hints: Hints
    journal: Journal
    border: Border


class Commands:
    """Starts commands, and knows those that run."""

    def __init__(
        self, owner: Owner, services: CommandServices, env: Mapping[str, str] | None = None
    ) -> None:
        self._owner = owner
        self._env = env or {}
        """Variables of the session, which commands have too."""
        self._services = services
        self._running: dict[int, StartedCommand] = {}
        self._starting = 0
        self._count = 0
        self._awaited = 0

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for a command."""
        return self._awaited > 0

    def running(self) -> list[CommandHandle]:
        return [self._handle(command) for command in self._running.values()]

    def _handle(self, command: StartedCommand) -> CommandHandle:
        return StartedHandle(command, self.being_awaited)

    async def run(self, command: CommandLine, options: CommandOptions) -> CommandResult:
        with self.being_awaited():
            started = await self.start(command, options)
            try:
                return await started.wait()
            except asyncio.CancelledError:
                await see_through(asyncio.create_task(started.kill()))
                raise

    async def begin(self, command: CommandLine, options: CommandOptions) -> CommandHandle:
        """Start a command in the background."""
        with self.being_awaited():
            return self._handle(await self.start(command, options, background=True))

    async def stream(
        self, command: CommandLine, options: CommandOptions
    ) -> AsyncGenerator[CommandEvent, None]:
        events: asyncio.Queue[CommandEvent | None] = asyncio.Queue()
        with self.being_awaited():
            started = await self.start(command, options, sink=events.put_nowait)
            passage = self.passage(started.charge)
            started.task.add_done_callback(lambda _: events.put_nowait(None))
            try:
                while (event := await events.get()) is not None:
                    for shown in await passage.event(event):
                        yield shown
                for shown in await passage.end():
                    yield shown
                yield CommandEvent("done", result=await started.wait())
            finally:
                if started.running:
                    await see_through(asyncio.create_task(started.kill()))

    async def start(
        self,
        command: CommandLine,
        options: CommandOptions,
        *,
        background: bool = False,
        sink: Sink = lambda event: None,
    ) -> StartedCommand:
        """Start a command, and return it once it runs or is over."""
        request = requested(*await self._inward(command, options), self._env)
        return await self.start_requested(text_of(command), request, background, sink)

    async def start_requested(
        self, text: str, request: CommandRequest, background: bool, sink: Sink
    ) -> StartedCommand:
        """Start a command that was checked and has passed inward."""
        whose = self._owner.principal
        with self._having_place():
            self._owner.admit("command")
            number = self._count = self._count + 1
            started = CommandStarted(whose, self._owner.key, number, text)
            await self._services.journal.intend(started)
            try:
                made = await self._owner.start_command(
                    number, text, request, background, sink, self
                )
            except BaseException:
                self._note_end(started, None)
                raise
            self._running[number] = made
            made.on_over = lambda result: self._ended(started, result)
        try:
            await asyncio.shield(made.began)
        except (asyncio.CancelledError, InvalidInput):  # it is over before its caller goes on
            await see_through(asyncio.create_task(made.kill()))
            raise
        return made

    async def _inward(
        self, command: CommandLine, options: CommandOptions
    ) -> tuple[CommandLine, CommandOptions]:
        """Pass a command inward, but for a text: it is code of the shell, and so would be what a
        border puts into it. Names of variables are no texts of the model's either."""
        inward, whose = self._services.border.inward, self._owner.principal
        passed = {name: each for name, each in options.items()}
        for name in {"cwd", "input"} & options.keys():
            passed[name] = await inward(passed[name], whose)
        env = options.get("env")
        if isinstance(env, Mapping):
            passed["env"] = {name: await inward(each, whose) for name, each in env.items()}
        words = command if isinstance(command, str) else await inward(command, whose)
        return words, cast(CommandOptions, passed)

    @contextlib.contextmanager
    def _having_place(self) -> Iterator[None]:
        if len(self._running) + self._starting >= MAX_COMMANDS:
            raise CapacityError(
                f"the session runs {MAX_COMMANDS} commands already: wait for one of them, or end "
                "one (session.commands() lists them)"
            )
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    @contextlib.contextmanager
    def being_awaited(self) -> Iterator[None]:
        self._owner.guard.check()
        self._awaited += 1
        try:
            yield
        finally:
            self._awaited -= 1
            self._owner.last_used = time.monotonic()

    def _ended(self, started: CommandStarted, result: CommandResult | None) -> None:
        del self._running[started.number]
        self._note_end(started, result)

    def _note_end(self, started: CommandStarted, result: CommandResult | None) -> None:
        self._services.journal.note(
            CommandEnded(started.principal, started.key, started.number, started.command, result)
        )

    # The way out of what they write (divingbell.session.commands.command.Exit)

    def text(self, shown: str, *, goes_on: bool = False) -> str:
        return self._services.border.text(shown, self._owner.principal, goes_on=goes_on)

    def passage(self, charge: Charge) -> Passage:
        return self._services.border.passage(self._owner.principal, charge)

    async def result(self, known: CommandResult, ended: frames.Header) -> CommandResult:
        whose = self._owner.principal
        if known.status == "error" and known.error is not None:
            hint = self._services.hints.hint_in(ended, whose.user)
            known = replace(known, error=replace(known.error, hint=hint))
        known = await self._services.border.outward(known, whose)
        note = self._services.border.note(whose)
        return replace(known, notes=(*known.notes, note)) if note else known

    # What happens to all of them

    def lose(self, reason: str) -> None:
        """Take note that all are about to be ended, and why."""
        for command in self._running.values():
            command.lose(reason)

    async def closed(self) -> None:
        """Wait until all are over, once their sandbox is gone."""
        tasks = [command.task for command in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=END_PATIENCE + 2 * FINISH_TIMEOUT)

    def end_background(self) -> bool:
        """End those that run in the background, which have no limit on their CPU time; return
        whether there were any."""
        found = [each for each in self._running.values() if each.is_in_background]
        for command in found:
            command.stop("rate")
        return bool(found)

    def flooding(self, overdrawn: float) -> list[StartedCommand]:
        """Return those that take most of the host's time, if it was commands that took most of what
        was overdrawn."""
        drawn = {command: command.drawn for command in self._running.values()}
        if sum(drawn.values()) <= overdrawn / 2:
            return []
        return [each for each, seconds in drawn.items() if seconds >= max(drawn.values()) / 2]
