"""A session whose executions are accounted for, wherever its code runs.

Before code runs, rates are checked, the code is reviewed and the journal is told; what it shows
passes the border. All that is done where the user of the session is, and is the same for sessions
of this process and for those on a node: what differs is only who runs a cell.
"""

import asyncio
import contextlib
import dataclasses
import math
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Unpack, overload

from divingbell import logs
from divingbell.border.border import Border, OpenBorder, Reading
from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.errors import InvalidInput, RateExceeded, SessionClosed
from divingbell.gateway.context import Asker, CallContext, to_nobody
from divingbell.gateway.functions.function import Tools, functions_of
from divingbell.journal.events import (
    CellEnded,
    CellRefused,
    CellStarted,
    ExecutionRefused,
    Revealed,
    SessionEnded,
    SessionOpened,
)
from divingbell.journal.journal import Journal
from divingbell.models import (
    Completion,
    DataFormat,
    Event,
    FrameLibrary,
    Ledger,
    Limits,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.review.reviewer import Reviewer
from divingbell.session.base import CommandHandle, SessionHandle
from divingbell.session.calls import Calls, ToolGateway
from divingbell.session.commands.command import Exit
from divingbell.session.commands.command import Sink as CommandSink
from divingbell.session.commands.commands import Commands, CommandServices
from divingbell.session.commands.handle import StartedCommand
from divingbell.session.commands.request import CommandRequest
from divingbell.session.copies import Copies
from divingbell.session.cpu_account import Consumer, CpuAccount
from divingbell.session.data import Data
from divingbell.session.files import Files
from divingbell.session.hints import Hints
from divingbell.session.inputs import CellInput, encoded
from divingbell.session.looks import Seen, completions_of, variables_of
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions
from divingbell.session.reviewing import Verdict, verdict_on
from divingbell.session.tables import TableDelivery
from divingbell.session.told_columns import ToldColumns
from divingbell.session.transcript import Sink
from divingbell.session.user_rates import UserRates
from divingbell.settings.policy import Policy
from divingbell.settings.review import ReviewSettings
from divingbell.shares import weight
from divingbell_inside import frames

log = logs.logger("divingbell")

PUT_FILE, SET_VARIABLE = "put_file", "set_variable"
"""What the program gives a session, as rules about flows know it: files; and variables, contexts of
runs and inputs of commands."""


class Ledgers(Protocol):
    """The keeper of token accounts (divingbell.journal.recorder)."""

    async def ledger_of(self, session: str, code: str, result: Result) -> Ledger | None:
        """Return the ledger of a cell that has ended."""


@dataclass(frozen=True, slots=True)
class SessionServices:
    """The parts that all sessions of an engine share."""

    interrupt_grace: float
    """Seconds between the interrupt and the kill of a cell."""
    copies: Copies
    hints: Hints = dataclasses.field(default_factory=Hints)
    journal: Journal = dataclasses.field(default_factory=Journal)
    border: Border = dataclasses.field(default_factory=OpenBorder)
    ledgers: Ledgers | None = None
    guard: LoopGuard = dataclasses.field(default_factory=LoopGuard)
    reviewer: Reviewer = dataclasses.field(default_factory=lambda: Reviewer(ReviewSettings()))
    rates: UserRates = dataclasses.field(default_factory=lambda: UserRates(Policy()))
    idle_timeout: float = 1800.0
    """Seconds without use after which a session ends that has no limit of its own."""


class AccountedSession(SessionHandle):
    """A session of which somebody here has to give account: admitted, reviewed, written down."""

    files: Files

    def __init__(
        self,
        identifier: str,
        principal: Principal,
        services: SessionServices,
        limits: Limits,
        consumer: Consumer,
        gateway: ToolGateway | None,
        options: SessionOptions | None,
        key: str | None = None,
    ) -> None:
        self.id = identifier
        self.options = options or SessionOptions()
        self.limits = limits
        self._services = services
        self._gateway = gateway
        self._opened_at = time.time()
        self.last_used = time.monotonic()
        self._cells = 0
        self._queue = asyncio.Lock()
        self._closed: str | None = None
        self._told_closed = False
        self._told_ignored = False
        self.files = self._files(self._took_file)
        results = self._files(self._took_result)
        self._calls = Calls(
            gateway,
            identifier,
            principal,
            self._send,
            self._drained,
            TableDelivery(results, lambda: self.limits),
            key,
        )
        self._columns = ToldColumns(
            services.border, lambda: self._calls.principal, self._calls.charge
        )
        self._data = Data(self.files, self.exchange, lambda: self.limits, self._calls.charge)
        self._commands = Commands(
            self,
            CommandServices(services.hints, services.journal, services.border),
            self.environment,
        )
        self._cpu = CpuAccount(services.rates, principal.user, consumer)

    def _files(self, on_put: Callable[[str], Reading]) -> Files:
        return Files(self.id, self.open_files, lambda: self.limits.disk, on_put)

    def _note_opened(self) -> None:
        opened = SessionOpened(self.principal, self.id, self.key, labels=self.labels)
        self._services.journal.note(opened)

    def _note_ended(self) -> None:
        """Tell the journal, once, that it has ended."""
        if self._closed is not None and not self._told_closed:
            self._told_closed = True
            ended = SessionEnded(self.principal, self.id, self.key, self._closed)
            self._services.journal.note(ended)

    async def let_go(self) -> None:
        """Take it that nobody holds it any more."""
        await self.close()

    # Where the code runs

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""

    @property
    @abstractmethod
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""

    @property
    @abstractmethod
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""

    @abstractmethod
    def account(self) -> None:
        """Charge the user with what it has used; end what has no limit of its own and no budget."""

    @abstractmethod
    async def start_command(
        self,
        number: int,
        text: str,
        request: CommandRequest,
        background: bool,
        sink: CommandSink,
        exit: Exit,
    ) -> StartedCommand:
        """Start a command that was admitted and written down.

        Raises:
            SessionClosed: the session has ended.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
        """

    @abstractmethod
    async def _prepare(self) -> None:
        """Have an interpreter in place for the cell that comes next."""

    @abstractmethod
    async def _run_cell(
        self,
        code: str,
        given: CellInput,
        timeout: float | None,
        asker: Asker | None,
        sink: Sink,
        notes: Sequence[str],
    ) -> Result:
        """Run the cell of the number `cells`, and return its result as its reader may see it."""

    @abstractmethod
    async def look(self, request: frames.Header, body: bytes = b"") -> Seen:
        """Have the interpreter look at what it holds."""

    @abstractmethod
    async def exchange(
        self, request: frames.Header, body: bytes = b"", *, changes: bool = False
    ) -> Seen:
        """Have the interpreter make a variable, or write one down."""

    @abstractmethod
    def open_files(self) -> int:
        """Return the descriptor of a socket to a file server in the session."""

    @abstractmethod
    def _send(self, header: frames.Header, body: bytes) -> None:
        """Send the answer to a call."""

    @abstractmethod
    async def _drained(self) -> None:
        """Return when enough of the answers was read."""

    @abstractmethod
    def _charge(self, seconds: float) -> object:
        """Count processor time of this process that was spent on a cell."""

    @property
    def principal(self) -> Principal:
        return self._calls.principal

    @property
    def cells(self) -> int:
        return self._cells

    @property
    def idle_timeout(self) -> float:
        """Seconds without use after which it ends."""
        own = self.options.idle_timeout
        return self._services.idle_timeout if own is None else own

    @property
    def opened_at(self) -> float:
        return self._opened_at

    @property
    def expires_at(self) -> float | None:
        if math.isinf(self.idle_timeout):
            return None
        return time.time() + self.last_used + self.idle_timeout - time.monotonic()

    @property
    def key(self) -> str:
        return self._calls.key

    @property
    def labels(self) -> Mapping[str, str]:
        return self.options.labels

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that it was opened with. Every new interpreter has them in `os.environ`;
        whatever else is started in the session shall have them too."""
        return self.options.env

    @property
    def guard(self) -> LoopGuard:
        """The guard of the loop that it belongs to."""
        return self._services.guard

    def joined(self, ignored: Sequence[str]) -> None:
        """Say in the log, once, that somebody joined it with options that it was not opened with.

        Their values are not told: people put tokens into `env`.
        """
        if ignored and not self._told_ignored:
            self._told_ignored = True
            message = "somebody has joined it with options that only opening it could set: %s"
            self._warn(message, ", ".join(ignored))

    def touch(self) -> None:
        """Count as used now."""
        self._check_open()
        self.last_used = time.monotonic()

    @property
    def busy(self) -> bool:
        return self._queue.locked()

    @property
    def in_use(self) -> bool:
        """Whether somebody waits for something of it. A command in the background is not that."""
        return self.busy or self._commands.awaited

    @property
    def closed(self) -> bool:
        return self._closed is not None

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
        return await self._run(code, context, argv, timeout, asker, tools, to_nobody)

    async def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> AsyncGenerator[Event, None]:
        self.guard.check()
        events: asyncio.Queue[Event | None] = asyncio.Queue()

        passage = self._services.border.passage(self.principal, self._calls.charge)
        tell = events.put_nowait

        async def run() -> Result:
            try:
                return await self._run(code, context, argv, timeout, asker, tools, tell)
            finally:
                tell(None)  # here, and not when the task is done: that is a turn of the loop later

        task = asyncio.create_task(run())
        try:
            while (event := await events.get()) is not None:
                await self._columns.learn()
                for shown in await passage.event(event):
                    yield shown
            await self._columns.learn()
            for shown in await passage.end():
                yield shown
            result = await task
            yield Event("done", cell=result.cell, result=result)
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

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
        self._check_open()
        if options.get("input"):
            self._receive(SET_VARIABLE)
        if background:
            return await self._commands.begin(command, options)
        return await self._commands.run(command, options)

    async def command_stream(
        self, command: CommandLine, **options: Unpack[CommandOptions]
    ) -> AsyncGenerator[CommandEvent, None]:
        self._check_open()
        if options.get("input"):
            self._receive(SET_VARIABLE)
        async with contextlib.aclosing(self._commands.stream(command, options)) as events:
            async for event in events:
                yield event

    async def start_requested(
        self, text: str, request: CommandRequest, background: bool, sink: CommandSink
    ) -> StartedCommand:
        """Start a command that was checked already; raises what `command` does."""
        self._check_open()
        with self._commands.being_awaited():
            return await self._commands.start_requested(text, request, background, sink)

    def commands(self) -> list[CommandHandle]:
        return self._commands.running()

    def check_rates(self) -> None:
        """Refuse a cell that could not begin now, before there is any work with it.

        Raises:
            RateExceeded: its user has used up a rate.
        """
        with self._telling_refusal("cell"):
            self._services.rates.check(self.principal.user)

    def admit(self, kind: Literal["cell", "command"]) -> None:
        """Count an execution that begins now.

        Raises:
            RateExceeded: its user has used up a rate.
        """
        with self._telling_refusal(kind):
            self._services.rates.admit(self.principal.user)

    @contextlib.contextmanager
    def _telling_refusal(self, kind: Literal["cell", "command"]) -> Iterator[None]:
        self._cpu.charge()
        try:
            yield
        except RateExceeded as error:
            refused = ExecutionRefused(
                self.principal, self.key, kind, str(error), error.retry_after
            )
            self._services.journal.note(refused)
            raise

    async def variables(self) -> list[Variable]:
        found = variables_of((await self.look({"op": "variables"})).items)
        return await self._services.border.outward(found, self.principal)

    async def complete(self, code: str, position: int) -> list[Completion]:
        source = encoded(code).source
        at = min(max(0, position), len(code))
        found = await self.look({"op": "complete", "position": at}, source)
        completions = completions_of(found.items, len(code))
        return await self._services.border.outward(completions, self.principal)

    async def reveal(self, text: str) -> str:
        self._check_open()
        if not isinstance(text, str):
            raise InvalidInput(f"reveal takes a text, not {type(text).__name__}")
        shown, count = await self._services.border.reveal(text, self.principal)
        if count:
            await self._services.journal.intend(Revealed(self.principal, count, "program"))
        return shown

    async def set(self, name: str, value: Any, *, format: DataFormat | None = None) -> None:
        self._receive(SET_VARIABLE)
        await self._data.set(name, value, format)

    async def get(
        self,
        name: str,
        *,
        format: DataFormat | None = None,
        frame: FrameLibrary | None = None,
        most: int | None = None,
    ) -> Any:
        return await self._data.get(name, format, frame, most)

    async def _run(
        self,
        code: str,
        context: Mapping[str, Any] | None,
        argv: Sequence[str] | None,
        timeout: float | None,
        asker: Asker | None,
        tools: Tools,
        sink: Sink,
    ) -> Result:
        services, whose = self._services, self.principal
        self._check_open()
        self.check_rates()
        if context:
            self._receive(SET_VARIABLE)
        tokens = await services.border.values_in(code, whose)
        given = code, context, argv, tokens
        # What is large is written in a thread, and in its turn: else a later run could pass it.
        ready = None if weight.is_large(given) else encoded(*given)
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise InvalidInput(f"the timeout must be more than 0 seconds, not {timeout!r}")
        # Annotations are read beside the event loop: pydantic takes a sixth of a second to load.
        functions = await asyncio.to_thread(functions_of, tools) if tools else ()
        asked = time.perf_counter()
        async with self._queue:
            waited = time.perf_counter() - asked
            self._check_open()
            if ready is None:
                ready = await weight.charged(lambda: encoded(*given), self._charge)
            self.admit("cell")
            number = self.cells + 1
            verdict = await self._review(code, number, timeout, asker)
            if verdict.refusal is not None:
                return await self._refuse(code, number, verdict)
            if functions and self._gateway is not None:
                await self._gateway.offer(self.key, functions)
            await self._prepare()
            started = CellStarted(whose, self.key, number, code, waited=waited)
            await services.journal.intend(started)
            self._cells = number
            result: Result | None = None
            try:
                result = await self._run_cell(code, ready, timeout, asker, sink, verdict.notes)
                return result
            finally:
                self._cpu.charge()
                services.journal.note(CellEnded(whose, self.key, number, code, result))

    async def _review(
        self, code: str, number: int, timeout: float | None, asker: Asker | None
    ) -> Verdict:
        """Look at code before it runs; where the rules say so, ask a person."""
        reviewer = self._services.reviewer
        if not reviewer.enabled:
            return Verdict()
        seconds = self.limits.timeout if timeout is None else timeout
        review = await reviewer.look(code, self.limits, seconds, self._charge)
        context = CallContext(self.principal, self.id, self.key, run=number, asker=asker)
        verdict = await verdict_on(review, self._gateway, context)
        self._check_open()  # a person may have taken a while
        return verdict

    async def _refuse(self, code: str, number: int, verdict: Verdict) -> Result:
        """Return the result of a cell that did not run."""
        assert verdict.refusal is not None
        self._cells, whose = number, self.principal
        self.last_used = time.monotonic()
        refused = CellRefused(whose, self.key, number, code, verdict.refusal.message)
        self._services.journal.note(refused)
        result = Result("error", error=verdict.refusal, cell=number, notes=verdict.notes)
        return await self._passed_out(result, code)

    async def _passed_out(self, result: Result, code: str) -> Result:
        """Return a result as its reader may see it, with the account of its tokens."""
        services = self._services
        await self._columns.learn()
        result = await services.border.outward(result, self.principal)
        if note := services.border.note(self.principal):
            result = dataclasses.replace(result, notes=(*result.notes, note))
        if services.ledgers is None:
            return result
        ledger = await services.ledgers.ledger_of(self.key, code, result)
        return dataclasses.replace(result, ledger=ledger)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise SessionClosed(f"the session {self.id!r} has ended: {self._closed}")

    def _took_file(self, name: str) -> Reading:
        """Take note of a file that comes from outside, and of what is in it."""
        self._receive(PUT_FILE)
        return self._services.border.reading(name, self.principal)

    def _took_result(self, name: str) -> Reading:
        """Take note of a file that is the result of a tool: rules know it as that already."""
        return self._services.border.reading(name, self.principal)

    def _receive(self, source: str) -> None:
        """Note that the program gives it something; of a session that has ended nothing is kept."""
        self.guard.check()
        self._check_open()
        self._calls.received(source)

    def _warn(self, message: str, about: object) -> None:
        extra = logs.marks(self.principal, self.key, self.cells)
        log.warning(f"session %s: {message}", self.id, about, extra=extra)
