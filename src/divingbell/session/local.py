"""A session that lives in this process."""

import asyncio
import contextlib
import dataclasses
import json
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Unpack, overload

from divingbell import logs
from divingbell.border.border import Border, OpenBorder, Reading
from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.errors import (
    DivingbellError,
    InvalidInput,
    RateExceeded,
    SandboxUnavailable,
    SessionClosed,
)
from divingbell.gateway.context import Asker, CallContext
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
    Consumption,
    DataFormat,
    Event,
    FrameLibrary,
    Isolation,
    Ledger,
    Limits,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.review.reviewer import Reviewer
from divingbell.sandbox.base import Sandbox
from divingbell.session.background import BackgroundOutput
from divingbell.session.base import CommandHandle, SessionHandle
from divingbell.session.calls import Calls, ToolGateway
from divingbell.session.cancelling import see_through
from divingbell.session.cell import INTERRUPT_EVERY, Cell
from divingbell.session.commands.commands import Commands, CommandServices
from divingbell.session.copies import Copies, Copy
from divingbell.session.cpu_account import CpuAccount
from divingbell.session.data import Data
from divingbell.session.files import Files
from divingbell.session.hints import Hints
from divingbell.session.inputs import CellInput, encoded
from divingbell.session.interpreter import Interpreter
from divingbell.session.looks import Looks, Seen, completions_of, variables_of
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions
from divingbell.session.outcome import BROKEN_LINE, Ending, StateChange
from divingbell.session.reviewing import Verdict, verdict_on
from divingbell.session.tables import TableDelivery
from divingbell.session.told_columns import ToldColumns
from divingbell.session.transcript import Sink, cell_of
from divingbell.session.user_rates import UserRates
from divingbell.session.value import value_of
from divingbell.settings.policy import Policy
from divingbell.settings.review import ReviewSettings
from divingbell.shares import weight
from divingbell.shares.running import cells
from divingbell_inside import frames

log = logs.logger("divingbell")

LOOK_TIMEOUT = 5.0
DATA_TIMEOUT = 60.0
"""Seconds for a variable to be made or written down. Measured: 100 MB take half of one on an idle
machine."""
OVERDRAFT = 5.0
"""Seconds of the host's processor time that a cell may take beyond its share. By then it has been
slowed down for twenty seconds."""
OVERDRAFT_BETWEEN = 0.5
"""The same between cells, where nobody waits for what is sent and no clock runs."""
SPINNING = 0.05
"""Seconds of CPU time that a session which does nothing never uses between two looks."""
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


class LocalSession(SessionHandle):
    """A session of this process: a sandbox, its interpreter, its owner, its state."""

    files: Files

    def __init__(
        self,
        identifier: str,
        principal: Principal,
        interpreter: Interpreter,
        services: SessionServices,
        renew: Callable[[Limits], Awaitable[Interpreter]],
        on_close: Callable[["LocalSession"], None],
        gateway: ToolGateway | None = None,
        options: SessionOptions | None = None,
    ) -> None:
        self.id = identifier
        self.options = options or SessionOptions()
        self.limits: Limits = interpreter.sandbox.limits
        self.files = Files(
            identifier,
            self._open_files,
            lambda: self.limits.disk,
            self._took_file,
        )
        self._opened_at = time.time()
        self.last_used = time.monotonic()
        self._cells = 0
        self._interpreter = interpreter
        self._services = services
        self._renew = renew
        self._on_close = on_close
        self._queue = asyncio.Lock()
        self._cell: Cell | None = None
        self._closed: str | None = None
        self._told_closed = False
        self._told_ignored = False
        self._copy = Copy(services.copies)
        self._background = BackgroundOutput()
        self._looks = Looks()
        self._gateway = gateway
        results = Files(identifier, self._open_files, lambda: self.limits.disk, self._took_result)
        self._calls = Calls(
            gateway,
            identifier,
            principal,
            self._send,
            self._drained,
            TableDelivery(results, lambda: self.limits),
        )
        self._columns = ToldColumns(
            services.border, lambda: self._calls.principal, self._calls.charge
        )
        self._data = Data(self.files, self._exchange, lambda: self.limits, self._calls.charge)
        self._commands = Commands(
            self,
            CommandServices(
                services.interrupt_grace, services.hints, services.journal, services.border
            ),
            self.environment,
        )
        self._cpu = CpuAccount(services.rates, principal.user, interpreter.sandbox)
        self._untold = StateChange()
        """A change of the state that no result has told of; the next one does."""
        self._ending: asyncio.Task[None] | None = None
        interpreter.listen(self, self.key)
        self._send_environment()
        services.journal.note(
            SessionOpened(self.principal, identifier, self.key, labels=self.labels)
        )

    @property
    def principal(self) -> Principal:
        return self._calls.principal

    @property
    def cells(self) -> int:
        return self._cells

    @property
    def sandbox(self) -> Sandbox:
        return self._interpreter.sandbox

    @property
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""
        return self._interpreter.alive

    @property
    def isolation(self) -> Isolation:
        return self.sandbox.isolation

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

    def consumption(self) -> Consumption:
        return self.sandbox.consumption()

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
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        return self._copy.cell

    @property
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""
        return self._copy.refused

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

    # For users (divingbell.session.base.SessionHandle)
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
        return await self._run(code, context, argv, timeout, asker, tools, lambda event: None)

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

    def commands(self) -> list[CommandHandle]:
        return self._commands.running()

    async def place_for_command(self) -> Interpreter:
        """Return the interpreter in whose sandbox a command can run now."""
        if self._interpreter.gone is not None:
            async with self._queue:
                self._check_open()
                await self._ensure_alive()
        self._check_open()
        self.last_used = time.monotonic()
        return self._interpreter

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

    def account(self) -> None:
        """Charge the user with what it has used. What runs in the background has no limit of its
        own, so it is ended when its user owes a whole budget."""
        is_spinning = self._cpu.charge() > SPINNING
        if not is_spinning or not self._services.rates.is_overdrawn(self.principal.user):
            return
        if not self._commands.end_background() and not self._commands.awaited:
            self._end_left_behind(
                "processes or threads that an earlier cell had left running used more CPU time "
                "than cpu_rate_per_user allows, and were ended"
            )

    async def interrupt(self) -> bool:
        if self._cell is None:
            return False
        self._cell.stop("cancelled")
        return True

    async def reset(self) -> None:
        async with self._queue:
            self._check_open()
            self._copy.hold()
            self.last_used = time.monotonic()
            change = await self._replace(fresh=True)
            self._untold = change if change.files_lost else StateChange()
            self._background.clear()

    async def variables(self) -> list[Variable]:
        found = variables_of((await self._look({"op": "variables"})).items)
        return await self._services.border.outward(found, self.principal)

    async def complete(self, code: str, position: int) -> list[Completion]:
        source = encoded(code).source
        at = min(max(0, position), len(code))
        found = await self._look({"op": "complete", "position": at}, source)
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

    async def _exchange(
        self, request: frames.Header, body: bytes = b"", *, changes: bool = False
    ) -> Seen:
        """Have the interpreter make a variable, or write one down."""
        async with self._queue:
            self._copy.hold()
            try:
                return await self._ask(request, body, DATA_TIMEOUT)
            finally:
                if self._closed is None:
                    self._copy.plan(self._interpreter, self.cells, changed=changes)

    async def _look(self, request: frames.Header, body: bytes = b"") -> Seen:
        """Have the interpreter look at what it holds."""
        async with self._queue:
            return await self._ask(request, body, LOOK_TIMEOUT)

    async def _ask(self, request: frames.Header, body: bytes, patience: float) -> Seen:
        """Ask the interpreter for something; the queue is ours.

        Raises:
            RateExceeded: its user owes CPU seconds: what it looks at may have code of its own.
        """
        self._check_open()
        self._cpu.charge()
        self._services.rates.check_cpu(self.principal.user)
        self.last_used = time.monotonic()
        await self._ensure_alive()
        number, seen = self._looks.begin()
        self._interpreter.send({**request, "look": number}, body)
        ending: asyncio.Task[None] | None = None
        try:
            await asyncio.wait([seen], timeout=patience)
            if not seen.done():
                ending = asyncio.create_task(self._end_look(seen))
                await asyncio.shield(ending)
        except asyncio.CancelledError:
            await see_through(ending or asyncio.create_task(self._end_look(seen)))
            raise
        finally:
            self._looks.end()
        if not seen.done():
            raise DivingbellError(
                "an object in the session did not answer when it was looked at, so the "
                "interpreter was replaced: the next result says which variables are left"
            )
        return seen.result()

    async def _end_look(self, seen: asyncio.Future[Seen]) -> None:
        """Free the interpreter of a look that is stuck in an object of the user's, or that nobody
        waits for any more, so that the session stays usable."""
        until = time.monotonic() + self._services.interrupt_grace
        while not seen.done() and time.monotonic() < until:
            self.sandbox.interrupt()  # one that comes before it has begun is not heard
            await asyncio.wait([seen], timeout=INTERRUPT_EVERY)
            await self.sandbox.interrupted()
        if not seen.done() and self._closed is None:
            self._untold = await self._replace(fresh=False)

    async def close(self, reason: str = "it was closed") -> None:
        if self._closed is None:
            self._closed = reason
            self._copy.close()
            if self._cell is not None:
                self._cell.end(f"the session ended: {reason}")
            self._commands.lose(f"the session ended: {reason}")
            self._on_close(self)
        if self._ending is not None:
            self._ending.cancel()
        try:
            await self._interpreter.stop()
        finally:
            self._cpu.charge()
            await self._calls.close()
            await self._commands.closed()
            if not self._told_closed:
                self._told_closed = True
                reason = self._closed or reason
                ended = SessionEnded(self.principal, self.id, self.key, reason)
                self._services.journal.note(ended)

    # Running

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
                charge = self._interpreter.host_time.charge
                ready = await weight.charged(lambda: encoded(*given), charge)
            self.admit("cell")
            number = self.cells + 1
            verdict = await self._review(code, number, timeout, asker)
            if verdict.refusal is not None:
                return await self._refuse(code, number, verdict)
            self._copy.hold()
            if functions and self._gateway is not None:
                await self._gateway.offer(self.key, functions)
            await self._ensure_alive()
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
        charge = self._interpreter.host_time.charge
        review = await reviewer.look(code, self.limits, seconds, charge)
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

    async def _run_cell(
        self,
        code: str,
        given: CellInput,
        timeout: float | None,
        asker: Asker | None,
        sink: Sink,
        notes: Sequence[str],
    ) -> Result:
        self.last_used = time.monotonic()
        limits = self.limits
        cell = Cell(
            self.cells,
            limits,
            limits.timeout if timeout is None else timeout,
            self._services.interrupt_grace,
            self._interpreter,
            sink,
            self._calls.cancel_all,
        )
        for note in notes:
            cell.note(note)
        self._cell = cell
        self._calls.asker = asker
        self._calls.adopt(cell)
        self._background.pass_on(cell.transcript)
        made = self._gateway.generation(self.key) if self._gateway else 0
        self._columns.begin_cell()
        wanted = {"columns": True} if self._columns.wanted else {}
        self._interpreter.send(
            {"op": "run", "cell": cell.number, "tools": made, **wanted, **given.lengths}, given.body
        )
        concluding: asyncio.Task[Result] | None = None
        try:
            with cells.run(self.key):
                ending = await cell.wait()
                if ending.finished and cell.plain:
                    result = await self._result_of(cell, ending, code)
                else:
                    concluding = asyncio.create_task(self._conclude(cell, code))
                    result = await asyncio.shield(concluding)
            self._untold = StateChange()
            return result
        except asyncio.CancelledError:
            cell.stop("cancelled")
            await see_through(concluding or asyncio.create_task(self._conclude(cell, code)))
            raise
        finally:
            self._cell = None
            self._calls.end_run()
            self.last_used = time.monotonic()
            if self._closed is None:
                self._copy.plan(self._interpreter, cell.number, changed=not cell.only_read)

    async def _conclude(self, cell: Cell, code: str) -> Result:
        """Wait for the end of a cell, put an interpreter in place where it has lost its own."""
        ending = await cell.wait()
        await self.sandbox.interrupted()
        if not ending.finished and self._closed is None:
            self._untold = await self._replace(fresh=False)
        await cell.finish_spool()
        return await self._result_of(cell, ending, code)

    async def _result_of(self, cell: Cell, ending: Ending, code: str) -> Result:
        value = await value_of(ending, self._interpreter.host_time.charge)
        result = cell.result(ending, self._untold, value)
        result = self._services.hints.added(result, ending.header, self.principal.user)
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

    async def _ensure_alive(self) -> None:
        """Put an interpreter in place where there is none; the next result tells of it."""
        if not self._interpreter.alive:
            self._untold = await self._replace(fresh=False)

    async def _replace(self, *, fresh: bool) -> StateChange:
        as_of = self._copy.use_up()
        self._calls.line_lost()
        self._commands.lose("the interpreter was replaced, and all processes were ended with it")
        try:
            copied = await self._interpreter.replace(self.cells, fresh=fresh)
        except SandboxUnavailable as error:
            self._check_open()
            self._warn("%s; it gets a new sandbox", error)
            await self._interpreter.stop()
            self._cpu.charge()
            renewed = await self._renew(self.limits)
            if self._closed is not None:  # meanwhile
                await renewed.stop()
            self._check_open()
            self._interpreter = renewed
            self._cpu.begin(renewed.sandbox)
            renewed.listen(self, self.key)
            self._send_environment()
            return StateChange("fresh", files_lost=True)
        if copied:  # a copy has all that the interpreter had
            return StateChange("rewound", as_of)
        self._send_environment()
        return StateChange("fresh")

    def _send_environment(self) -> None:
        """Give an interpreter that is new the variables, before the first cell that it runs."""
        if self.environment:
            self._send({"op": "environment"}, json.dumps(dict(self.environment)).encode())

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

    def _open_files(self) -> int:
        self.guard.check()
        self.touch()
        return self._interpreter.sandbox.open_files()

    # Text and frames of the interpreter (divingbell.session.interpreter.Listener)

    def text(self, data: bytes) -> None:
        if self._cell is not None:
            self._cell.text(data)
        else:
            self._background.add("stdout", data, self.cells)

    def frame(self, header: frames.Header, body: bytes) -> None:
        event = header.get("event")
        if event == "call":
            self._begin_call(header, body)
        elif event == "cancel":
            self._calls.cancel(header)
        elif event == "copied":
            self._copy.answered(header)
        elif event == "seen":
            self._looks.answered(header, body)
        elif event == "columns":
            self._columns.add(body)
        elif self._cell is not None:
            self._cell.frame(header, body)
        elif event == "stdout" or event == "stderr":
            self._background.add(event, body, cell_of(header, self.cells))

    def _begin_call(self, header: frames.Header, body: bytes) -> None:
        try:
            self._calls.begin(header, body, self._cell)
        except frames.FrameError as error:
            self.ended(BROKEN_LINE.format(error))

    def _send(self, header: frames.Header, body: bytes) -> None:
        self._interpreter.send(header, body)

    async def _drained(self) -> None:
        await self._interpreter.drained()

    def ended(self, reason: str) -> None:
        self._calls.line_lost()
        if self._cell is not None:
            self._cell.end(reason)
        self._looks.lost()

    def overdrawn(self, seconds: float, times: float) -> None:
        if flooding := self._commands.flooding(seconds):
            if seconds > OVERDRAFT:
                self._interpreter.host_time.forgive()
                for command in flooding:
                    command.stop("host")
        elif self._cell is not None:
            if seconds > OVERDRAFT:
                self._interpreter.host_time.forgive()
                self._cell.stop("host")
        elif seconds * times > OVERDRAFT_BETWEEN:
            self._end_left_behind(
                "processes or threads that an earlier cell had left running kept the host busy "
                "with what they sent, and were ended"
            )

    def _end_left_behind(self, reason: str) -> None:
        """End what runs between cells, unless that is done already."""
        if self._ending is None and not self.busy:
            self._interpreter.host_time.forgive()
            self._interpreter.give_up(reason)
            self._ending = asyncio.create_task(self._end_all(reason))

    async def _end_all(self, reason: str) -> None:
        """End what runs between cells; the next result tells of it."""
        self._warn("%s", reason)
        try:
            async with self._queue:
                if self._closed is None and not self._interpreter.alive:
                    self._copy.hold()
                    change = await self._replace(fresh=False)
                    self._untold = dataclasses.replace(change, reason=reason)
        except DivingbellError as error:
            self._warn("it could not be replaced: %s", error)
        finally:
            self._ending = None

    def _warn(self, message: str, about: object) -> None:
        extra = logs.marks(self.principal, self.key, self.cells)
        log.warning(f"session %s: {message}", self.id, about, extra=extra)
