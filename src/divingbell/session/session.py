"""One conversation: a sandbox, its interpreter, its owner, its state."""

import asyncio
import contextlib
import dataclasses
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from divingbell.border.border import Border, OpenBorder
from divingbell.errors import DivingbellError, InvalidInput, SandboxUnavailable, SessionClosed
from divingbell.gateway.context import Asker
from divingbell.journal.events import CellEnded, CellStarted, SessionEnded, SessionOpened
from divingbell.journal.journal import Journal
from divingbell.models import Completion, Event, Isolation, Ledger, Limits, Result, Variable
from divingbell.principal import Principal
from divingbell.sandbox.base import Sandbox
from divingbell.session.calls import Calls, ToolGateway
from divingbell.session.cell import INTERRUPT_EVERY, Cell, Ending, StateChange
from divingbell.session.copies import Copies, Copy
from divingbell.session.files import Files
from divingbell.session.hints import Hints
from divingbell.session.interpreter import Interpreter
from divingbell.session.tether import field_of
from divingbell.session.transcript import EVENT_COST, Sink, cell_of
from divingbell.shares.running import cells
from divingbell_inside import frames

log = logging.getLogger("divingbell")

MAX_CODE = frames.MAX_BODY
LOOK_TIMEOUT = 5.0
MAX_COMPLETIONS = 200
MAX_COMPLETION = 200
MAX_BACKGROUND = 1 << 16
OVERDRAFT = 5.0
"""Seconds of the host's processor time that a cell may take beyond its share. By then it has been
slowed down for twenty seconds."""
OVERDRAFT_BETWEEN = 0.5
"""The same between cells, where nobody waits for what is sent and no clock runs."""


class Ledgers(Protocol):
    """What keeps account of tokens (divingbell.journal.recorder)."""

    async def ledger_of(self, session: str, code: str, result: Result) -> Ledger | None:
        """Return the ledger of a cell that has ended."""


@dataclass(frozen=True, slots=True)
class SessionServices:
    """What all sessions of an engine share."""

    interrupt_grace: float
    """Seconds between the interrupt and the kill of a cell."""
    copies: Copies
    hints: Hints = dataclasses.field(default_factory=Hints)
    journal: Journal = dataclasses.field(default_factory=Journal)
    border: Border = dataclasses.field(default_factory=OpenBorder)
    ledgers: Ledgers | None = None


class Session:
    """Runs cells one after another, in the order in which they were asked for."""

    def __init__(
        self,
        identifier: str,
        principal: Principal,
        interpreter: Interpreter,
        services: SessionServices,
        renew: Callable[[Limits], Awaitable[Interpreter]],
        on_close: Callable[["Session"], None],
        gateway: ToolGateway | None = None,
    ) -> None:
        self.id = identifier
        self.limits: Limits = interpreter.sandbox.limits
        self.files = Files(self._open_files, lambda: self.limits.disk)
        self.last_used = time.monotonic()
        self.holders = 0
        """How many `async with` blocks hold it."""
        self.cells = 0
        """How many cells have been run."""
        self._interpreter = interpreter
        self._services = services
        self._renew = renew
        self._on_close = on_close
        self._queue = asyncio.Lock()
        self._cell: Cell | None = None
        self._closed: str | None = None
        self._told_closed = False
        self._copy = Copy(services.copies)
        self._background: list[tuple[str, bytes, int]] = []
        self._background_bytes = 0
        self._seen: asyncio.Future[list[Any]] | None = None
        """What the interpreter has seen when it looked at its variables."""
        self._looks = 0
        self._gateway = gateway
        self._calls = Calls(gateway, identifier, principal, self._send, self._drained)
        self._untold = StateChange()
        """What happened to the state with no result to tell it; the next one does."""
        self._ending: asyncio.Task[None] | None = None
        interpreter.listen(self, self.key)
        services.journal.note(SessionOpened(self.principal, identifier, self.key))

    @property
    def principal(self) -> Principal:
        """On whose behalf it runs."""
        return self._calls.principal

    @property
    def user(self) -> str | None:
        """The user whose session it is; None where nobody was named."""
        return self.principal.user or None

    @property
    def sandbox(self) -> Sandbox:
        return self._interpreter.sandbox

    @property
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""
        return self._interpreter.alive

    @property
    def isolation(self) -> Isolation:
        """What is in force around this session."""
        return self.sandbox.isolation

    @property
    def key(self) -> str:
        """What tells it from all others, of all users, also from a later one of its id."""
        return self._calls.key

    @property
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        return self._copy.cell

    @property
    def copy_refused(self) -> str | None:
        """Why the last copy that was asked for was not made."""
        return self._copy.refused

    @property
    def busy(self) -> bool:
        return self._queue.locked()

    @property
    def closed(self) -> bool:
        return self._closed is not None

    # What users call

    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> Result:
        """Run a cell and return its result.

        Whatever the code does is told by the result. Cancelling this call interrupts the cell.
        `argv` is `sys.argv` from now on; where its first is a file inside, that is `__file__`.
        `asker` reaches the person who may be asked about calls of tools.

        Raises:
            SessionClosed: the session has ended.
            InvalidInput: the code is no text or too long, or a context value is not plain data.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
        """
        return await self._run(code, context, argv, timeout, asker, lambda event: None)

    async def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
    ) -> AsyncIterator[Event]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Takes and raises what `run` does.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()

        def tell(event: Event) -> None:
            events.put_nowait(self._services.border.outward(event, self.principal))

        task = asyncio.create_task(self._run(code, context, argv, timeout, asker, tell))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            result = await task
            yield Event("done", cell=result.cell, result=result)
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def interrupt(self) -> bool:
        """Stop the cell that is running; its result has the status `cancelled`.

        Returns:
            Whether one was running.
        """
        if self._cell is None:
            return False
        self._cell.stop("cancelled")
        return True

    async def reset(self) -> None:
        """Forget every variable. Files in the workspace stay."""
        async with self._queue:
            self._check_open()
            self._copy.hold()
            self.last_used = time.monotonic()
            aftermath = await self._replace(fresh=True)
            self._untold = aftermath if aftermath.files_lost else StateChange()
            self._background.clear()
            self._background_bytes = 0

    async def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them.

        Raises:
            DivingbellError: looking at one of them got stuck; the interpreter was replaced.
        """
        found = _variables_of(await self._look({"op": "variables"}))
        return self._services.border.outward(found, self.principal)

    async def complete(self, code: str, position: int) -> list[Completion]:
        """Say how the code could go on at that position: names, attributes, files.

        Raises:
            InvalidInput: the code is no text or too long.
            DivingbellError: looking at what is there got stuck; the interpreter was replaced.
        """
        source, _ = _encode(code, None, None)
        at = min(max(0, position), len(code))
        found = await self._look({"op": "complete", "position": at}, source)
        return self._services.border.outward(_completions_of(found, len(code)), self.principal)

    async def _look(self, request: frames.Header, body: bytes = b"") -> list[Any]:
        """Have the interpreter look at what it holds."""
        async with self._queue:
            self._check_open()
            self.last_used = time.monotonic()
            await self._ensure_alive()
            seen: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
            self._seen = seen
            self._looks += 1  # one that was given up may still be answered
            self._interpreter.send({**request, "look": self._looks}, body)
            ending: asyncio.Task[None] | None = None
            try:
                await asyncio.wait([seen], timeout=LOOK_TIMEOUT)
                if not seen.done():
                    ending = asyncio.create_task(self._end_look(seen))
                    await asyncio.shield(ending)
            except asyncio.CancelledError:
                await _see_through(ending or asyncio.create_task(self._end_look(seen)))
                raise
            finally:
                self._seen = None
            if not seen.done():
                raise DivingbellError(
                    "looking at the variables got stuck, and the interpreter was replaced"
                )
            return seen.result()

    async def _end_look(self, seen: asyncio.Future[list[Any]]) -> None:
        """Where an object of the user's has got stuck, or nobody waits any more: free the
        interpreter of it, so that the session stays usable."""
        until = time.monotonic() + self._services.interrupt_grace
        while not seen.done() and time.monotonic() < until:
            self.sandbox.interrupt()  # one that comes before it has begun is not heard
            await asyncio.wait([seen], timeout=INTERRUPT_EVERY)
            await self.sandbox.interrupted()
        if not seen.done() and self._closed is None:
            self._untold = await self._replace(fresh=False)

    async def close(self, reason: str = "it was closed") -> None:
        """End every process of the session and remove its workspace. May be called again."""
        if self._closed is None:
            self._closed = reason
            self._copy.close()
            if self._cell is not None:
                self._cell.end(f"the session ended: {reason}")
            self._on_close(self)
        if self._ending is not None:
            self._ending.cancel()
        try:
            await self._interpreter.stop()
        finally:
            await self._calls.close()
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
        sink: Sink,
    ) -> Result:
        services, whose = self._services, self.principal
        source, values = _encode(services.border.inward(code, whose), context, argv)
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise InvalidInput(f"the timeout must be more than 0 seconds, not {timeout!r}")
        async with self._queue:
            self._check_open()
            self._copy.hold()
            await self._ensure_alive()
            number = self.cells + 1
            await services.journal.intend(CellStarted(whose, self.key, number, code))
            self.cells = number
            result: Result | None = None
            try:
                result = await self._run_cell(code, values, source, timeout, asker, sink)
                return result
            finally:
                services.journal.note(CellEnded(whose, self.key, number, code, result))

    async def _run_cell(
        self,
        code: str,
        values: bytes,
        source: bytes,
        timeout: float | None,
        asker: Asker | None,
        sink: Sink,
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
        self._cell = cell
        self._calls.asker = asker
        self._calls.adopt(cell)
        self._pass_on_background(cell)
        made = self._gateway.generation if self._gateway else 0
        self._interpreter.send(
            {"op": "run", "cell": cell.number, "context": len(values), "tools": made},
            values + source,
        )
        concluding: asyncio.Task[Result] | None = None
        try:
            with cells.run(self.key):
                ending = await cell.wait()
                if ending.finished and cell.plain:
                    result = await self._tell(cell, ending, code)
                else:
                    concluding = asyncio.create_task(self._conclude(cell, code))
                    result = await asyncio.shield(concluding)
            self._untold = StateChange()
            return result
        except asyncio.CancelledError:
            cell.stop("cancelled")
            await _see_through(concluding or asyncio.create_task(self._conclude(cell, code)))
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
        return await self._tell(cell, ending, code)

    async def _tell(self, cell: Cell, ending: Ending, code: str) -> Result:
        result = cell.result(ending, self._untold)
        services = self._services
        result = services.hints.added(result, ending.header, self.principal.user)
        result = services.border.outward(result, self.principal)
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
        try:
            copied = await self._interpreter.replace(self.cells, fresh=fresh)
        except SandboxUnavailable as error:
            self._check_open()
            log.warning("session %s: %s; it gets a new sandbox", self.id, error)
            await self._interpreter.stop()
            renewed = await self._renew(self.limits)
            if self._closed is not None:  # meanwhile
                await renewed.stop()
            self._check_open()
            self._interpreter = renewed
            renewed.listen(self, self.key)
            return StateChange("fresh", files_lost=True)
        return StateChange("rewound", as_of) if copied else StateChange("fresh")

    def _check_open(self) -> None:
        if self._closed is not None:
            raise SessionClosed(f"the session {self.id!r} has ended: {self._closed}")

    def _open_files(self) -> int:
        self._check_open()
        self.last_used = time.monotonic()
        return self._interpreter.sandbox.open_files()

    # What the interpreter says (divingbell.session.interpreter.Listener)

    def text(self, data: bytes) -> None:
        if self._cell is not None:
            self._cell.text(data)
        else:
            self._keep_background("stdout", data, self.cells)

    def frame(self, header: frames.Header, body: bytes) -> None:
        event = header.get("event")
        if event == "call":
            self._begin_call(header, body)
        elif event == "cancel":
            self._calls.cancel(header)
        elif event == "copied":
            self._copy.answered(header)
        elif event == "seen":
            is_asked_for = header.get("look") == self._looks
            if self._seen is not None and is_asked_for and not self._seen.done():
                self._seen.set_result(field_of(header, "items", list, []))
        elif self._cell is not None:
            self._cell.frame(header, body)
        elif event in ("stdout", "stderr"):
            self._keep_background(str(event), body, cell_of(header, self.cells))

    def _begin_call(self, header: frames.Header, body: bytes) -> None:
        try:
            self._calls.begin(header, body, self._cell)
        except frames.FrameError as error:
            self.ended(f"the interpreter broke the rules of its line: {error}")

    def _send(self, header: frames.Header, body: bytes) -> None:
        self._interpreter.send(header, body)

    async def _drained(self) -> None:
        await self._interpreter.drained()

    def ended(self, reason: str) -> None:
        self._calls.line_lost()
        if self._cell is not None:
            self._cell.end(reason)
        if self._seen is not None and not self._seen.done():
            self._seen.set_result([])

    def overdrawn(self, seconds: float, times: float) -> None:
        if self._cell is not None:
            if seconds > OVERDRAFT:
                self._interpreter.host_time.forgive()
                self._cell.stop("host")
        elif seconds * times > OVERDRAFT_BETWEEN and self._ending is None and not self.busy:
            reason = (
                "what an earlier cell had left running kept the host busy with what it sent, "
                "and was ended"
            )
            self._interpreter.host_time.forgive()
            self._interpreter.give_up(reason)
            self._ending = asyncio.create_task(self._end_all(reason))

    async def _end_all(self, reason: str) -> None:
        """End what runs between cells; the next result tells of it."""
        log.warning("session %s: %s", self.id, reason)
        try:
            async with self._queue:
                if self._closed is None and not self._interpreter.alive:
                    self._copy.hold()
                    aftermath = await self._replace(fresh=False)
                    self._untold = dataclasses.replace(aftermath, reason=reason)
        except DivingbellError as error:
            log.warning("session %s: it could not be replaced: %s", self.id, error)
        finally:
            self._ending = None

    def _keep_background(self, name: str, data: bytes, cell: int) -> None:
        """Output between cells belongs to an earlier one; the next result shows it."""
        if self._background_bytes < MAX_BACKGROUND:
            self._background.append((name, data[:MAX_BACKGROUND], cell))
            self._background_bytes += len(data) + EVENT_COST

    def _pass_on_background(self, cell: Cell) -> None:
        for name, data, origin in self._background:
            cell.transcript.text(name, data, origin)
        self._background.clear()
        self._background_bytes = 0


async def _see_through(concluding: asyncio.Task[Any]) -> None:
    """After a cancelled call: see what it began to its end, so that the session stays usable."""
    while not concluding.done():
        # Cancelled again and again, we still may not leave a cell behind that runs on.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([concluding])
    concluding.exception()  # whoever is gone is not told; the next run meets it again


def _encode(
    code: str, context: Mapping[str, Any] | None, argv: Sequence[str] | None
) -> tuple[bytes, bytes]:
    if not isinstance(code, str):
        raise InvalidInput(f"code must be text, not {type(code).__name__}")
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the code is not valid text: {error.reason} at {error.start}") from None
    values = b""
    if context or argv is not None:
        names = dict(context or {})
        for name in names:
            if not isinstance(name, str) or not name.isidentifier():
                raise InvalidInput(f"context: {name!r} can't be the name of a variable")
        if argv is not None:
            names[frames.ARGV] = _checked(argv)
        try:
            values = json.dumps(names, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"context: only plain data (numbers, text, lists, dicts …) can be passed: {error}"
            ) from None
    if len(source) + len(values) > MAX_CODE:
        raise InvalidInput(
            f"code and context have {len(source) + len(values):,} bytes, {MAX_CODE:,} are allowed; "
            "put large data into a file with session.files.put()"
        )
    return source, values


def _checked(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
        raise InvalidInput("argv must be a list of texts, with the name of the script as the first")
    return list(argv)


def _completions_of(items: list[Any], length: int) -> list[Completion]:
    found = []
    for item in items[:MAX_COMPLETIONS]:
        if isinstance(item, list) and [type(part) for part in item] == [int, int, str]:
            start, end, text = item
            if 0 <= start <= end <= length and len(text) <= MAX_COMPLETION:
                found.append(Completion(start, end, text))
    return found


def _variables_of(items: list[Any]) -> list[Variable]:
    found = []
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            shape = item.get("shape")
            sizes = isinstance(shape, list) and all(type(size) is int for size in shape)
            found.append(
                Variable(
                    name=item["name"],
                    type=field_of(item, "type", str, "?"),
                    shape=tuple(shape) if sizes and shape is not None else None,
                    length=field_of(item, "length", int),
                    preview=field_of(item, "preview", str),
                )
            )
    return found
