"""A session that lives in this process."""

import asyncio
import dataclasses
import json
import time
from collections.abc import Awaitable, Callable, Sequence

from divingbell import logs
from divingbell.errors import (
    DivingbellError,
    SandboxUnavailable,
)
from divingbell.gateway.context import Asker
from divingbell.models import (
    Consumption,
    Isolation,
    Limits,
    Result,
)
from divingbell.principal import Principal
from divingbell.sandbox.base import Sandbox
from divingbell.session.accounted import AccountedSession, SessionServices
from divingbell.session.background import BackgroundOutput
from divingbell.session.calls import ToolGateway
from divingbell.session.cancelling import see_through
from divingbell.session.cell import INTERRUPT_EVERY, Cell
from divingbell.session.commands import line
from divingbell.session.commands.command import Command, Exit, Place
from divingbell.session.commands.command import Sink as CommandSink
from divingbell.session.commands.request import CommandRequest
from divingbell.session.copies import Copy
from divingbell.session.inputs import CellInput
from divingbell.session.interpreter import Interpreter
from divingbell.session.looks import Looks, Seen
from divingbell.session.options import SessionOptions
from divingbell.session.outcome import BROKEN_LINE, Ending, StateChange
from divingbell.session.transcript import Sink, cell_of
from divingbell.session.value import value_of
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


class LocalSession(AccountedSession):
    """A session of this process: a sandbox, its interpreter, its owner, its state."""

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
        key: str | None = None,
    ) -> None:
        self._interpreter = interpreter
        self._renew = renew
        self._on_close = on_close
        self._cell: Cell | None = None
        self._copy = Copy(services.copies)
        self._background = BackgroundOutput()
        self._looks = Looks()
        self._on_columns: Callable[[bytes], None] | None = None
        sandbox = interpreter.sandbox
        super().__init__(
            identifier, principal, services, sandbox.limits, sandbox, gateway, options, key
        )
        self._untold = StateChange()
        """A change of the state that no result has told of; the next one does."""
        self._ending: asyncio.Task[None] | None = None
        interpreter.listen(self, self.key)
        self._send_environment()
        self._note_opened()

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

    def consumption(self) -> Consumption:
        return self.sandbox.consumption()

    @property
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        return self._copy.cell

    @property
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""
        return self._copy.refused

    async def execute(
        self,
        number: int,
        given: CellInput,
        timeout: float | None,
        sink: Sink,
        notes: Sequence[str],
        on_columns: Callable[[bytes], None] | None = None,
    ) -> Result:
        """Run a cell that whoever asks for it has admitted, reviewed and written down, and return
        its result as it is. It has that number, or the next one that is free. `on_columns` gets
        what it tells of its tables, before the text that it is about.

        Raises:
            SessionClosed: the session has ended.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
        """
        async with self._queue:
            self._check_open()
            await self._prepare()
            self._cells = max(number, self._cells + 1)
            self._on_columns = on_columns
            try:
                return await self._run_cell("", given, timeout, None, sink, notes)
            finally:
                self._on_columns = None

    def note(self, words: str) -> None:
        """Add a sentence to the notes of the cell that runs."""
        if self._cell is not None:
            self._cell.note(words)

    async def start_command(
        self,
        number: int,
        text: str,
        request: CommandRequest,
        background: bool,
        sink: CommandSink,
        exit: Exit,
    ) -> Command:
        interpreter = await self._place_for_command()
        place = Place(
            sandbox=interpreter.sandbox,
            limits=self.limits,
            grace=self._services.interrupt_grace,
            timeout=request.timeout or (None if background else self.limits.timeout),
            cpu_seconds=None if background else self.limits.cpu_seconds,
        )
        to_server = line.CommandLine(place.sandbox.open_command(number), interpreter.host_time)
        return Command(number, text, request, place, to_server, sink, exit)

    async def _place_for_command(self) -> Interpreter:
        """Return the interpreter in whose sandbox a command can run now."""
        if self._interpreter.gone is not None:
            async with self._queue:
                self._check_open()
                await self._ensure_alive()
        self._check_open()
        self.last_used = time.monotonic()
        return self._interpreter

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

    async def exchange(
        self, request: frames.Header, body: bytes = b"", *, changes: bool = False
    ) -> Seen:
        async with self._queue:
            self._copy.hold()
            try:
                return await self._ask(request, body, DATA_TIMEOUT)
            finally:
                if self._closed is None:
                    self._copy.plan(self._interpreter, self.cells, changed=changes)

    async def look(self, request: frames.Header, body: bytes = b"") -> Seen:
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
            self._note_ended()

    # Running

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
        is_told = self._columns.wanted or self._on_columns is not None
        wanted = {"columns": True} if is_told else {}
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

    async def _prepare(self) -> None:
        self._copy.hold()
        await self._ensure_alive()

    def _charge(self, seconds: float) -> object:
        return self._interpreter.host_time.charge(seconds)

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

    def open_files(self) -> int:
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
            (self._on_columns or self._columns.add)(body)
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
