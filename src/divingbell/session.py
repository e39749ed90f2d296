"""One conversation: a sandbox, its interpreter, its owner, its state."""

import asyncio
import contextlib
import dataclasses
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from divingbell.calls import Asker, Calls, Door
from divingbell.cell import Aftermath, Cell
from divingbell.errors import DivingbellError, InvalidInput, SandboxUnavailable, SessionClosed
from divingbell.files import Files
from divingbell.interpreter import Interpreter
from divingbell.models import Event, Limits, Result, Variable
from divingbell.sandbox.base import Isolation, Sandbox
from divingbell.tether import field_of
from divingbell.transcript import EVENT_COST, Sink, cell_of
from divingbell.turns import cells
from divingbell_inside import frames

log = logging.getLogger("divingbell")

MAX_CODE = frames.MAX_BODY
VARIABLES_TIMEOUT = 5.0
PRESSURE = 0.5
"""No copy is made when the session holds more than this part of its memory."""
MAX_BACKGROUND = 1 << 16
OVERDRAFT = 5.0
"""Seconds of the host's processor time that a cell may take beyond its share. By then it has been
slowed down for twenty seconds."""
OVERDRAFT_BETWEEN = 0.5
"""The same between cells, where nobody waits for what is sent and no clock runs."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How sessions behave, from the settings."""

    copy_after: float
    interrupt_grace: float


class Session:
    """Runs cells one after another, in the order in which they were asked for."""

    def __init__(
        self,
        identifier: str,
        user: str | None,
        interpreter: Interpreter,
        rules: Rules,
        renew: Callable[[Limits], Awaitable[Interpreter]],
        on_close: Callable[["Session"], None],
        door: Door | None = None,
    ) -> None:
        self.id = identifier
        self.user = user
        self.limits: Limits = interpreter.sandbox.limits
        self.files = Files(self._open_files, lambda: self.limits.disk)
        self.last_used = time.monotonic()
        self.holders = 0
        """How many `async with` blocks hold it."""
        self.cells = 0
        """How many cells have been run."""
        self._interpreter = interpreter
        self._rules = rules
        self._renew = renew
        self._on_close = on_close
        self._queue = asyncio.Lock()
        self._cell: Cell | None = None
        self._closed: str | None = None
        self.copied_cell: int | None = None
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        self.copy_refused: str | None = None
        """Why the last copy that was asked for was not made."""
        self._copy_timer: asyncio.TimerHandle | None = None
        self._copy_asked_for = 0
        self._background: list[tuple[str, bytes, int]] = []
        self._background_bytes = 0
        self._variables: asyncio.Future[list[Variable]] | None = None
        self._door = door
        self._calls = Calls(door, identifier, user, self._send, self._drained)
        self._untold = Aftermath()
        """What happened to the state with no result to tell it; the next one does."""
        self._ending: asyncio.Task[None] | None = None
        interpreter.listener = self

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
        asker: Asker | None = None,
    ) -> Result:
        """Run a cell and return its result.

        Whatever the code does is told by the result. Cancelling this call interrupts the cell.
        `asker` reaches the person who may be asked about calls of tools.

        Raises:
            SessionClosed: the session has ended.
            InvalidInput: the code is no text or too long, or a context value is not plain data.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
        """
        return await self._run(code, timeout, context, asker, lambda event: None)

    async def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        asker: Asker | None = None,
    ) -> AsyncIterator[Event]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Raises what `run` raises.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._run(code, timeout, context, asker, events.put_nowait))
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
            self._cancel_copy()
            self.last_used = time.monotonic()
            aftermath = await self._replace(fresh=True)
            self._untold = aftermath if aftermath.files_lost else Aftermath()
            self._background.clear()
            self._background_bytes = 0

    async def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them.

        Raises:
            DivingbellError: looking at one of them got stuck; the interpreter was replaced.
        """
        async with self._queue:
            self._check_open()
            self.last_used = time.monotonic()
            aftermath = await self._ensure_alive()
            if aftermath.state != "kept":
                self._untold = aftermath
            self._variables = asyncio.get_running_loop().create_future()
            self._interpreter.send({"op": "variables"})
            try:
                async with asyncio.timeout(VARIABLES_TIMEOUT):
                    return await self._variables
            except TimeoutError:
                # Looking at an object of the user's has got stuck.
                self._untold = await self._replace(fresh=False)
                raise DivingbellError(
                    "looking at the variables got stuck, and the interpreter was replaced"
                ) from None
            finally:
                self._variables = None

    async def close(self, reason: str = "it was closed") -> None:
        """End every process of the session and remove its workspace. May be called again."""
        if self._closed is None:
            self._closed = reason
            self._cancel_copy()
            if self._cell is not None:
                self._cell.end(f"the session ended: {reason}")
            self._on_close(self)
        if self._ending is not None:
            self._ending.cancel()
        try:
            await self._interpreter.stop()
        finally:
            await self._calls.close()

    # Running

    async def _run(
        self,
        code: str,
        timeout: float | None,
        context: Mapping[str, Any] | None,
        asker: Asker | None,
        sink: Sink,
    ) -> Result:
        source, values = _encode(code, context)
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise InvalidInput(f"the timeout must be more than 0 seconds, not {timeout!r}")
        async with self._queue:
            self._check_open()
            self._cancel_copy()
            aftermath = await self._ensure_alive()
            if aftermath.state == "kept":
                aftermath = self._untold
            self._untold = Aftermath()
            self.last_used = time.monotonic()
            self.cells += 1
            limits = self.limits
            cell = Cell(
                self.cells,
                limits,
                limits.timeout if timeout is None else timeout,
                self._rules.interrupt_grace,
                self._interpreter,
                sink,
                self._calls.cancel_all,
            )
            self._cell = cell
            self._calls.asker = asker
            self._calls.adopt(cell)
            self._pass_on_background(cell)
            made = self._door.generation if self._door else 0
            self._interpreter.send(
                {"op": "run", "cell": cell.number, "context": len(values), "tools": made},
                values + source,
            )
            concluding = asyncio.create_task(self._conclude(cell, code, aftermath))
            try:
                with cells.run(self.key):
                    return (await asyncio.shield(concluding))[0]
            except asyncio.CancelledError:
                cell.stop("cancelled")
                await self._see_through(concluding)
                raise
            finally:
                self._cell = None
                self._calls.end_run()
                self.last_used = time.monotonic()
                self._plan_copy()

    async def _see_through(self, concluding: asyncio.Task[tuple[Result, Aftermath]]) -> None:
        """After a cancelled call: see the cell to its end, so that the session stays usable."""
        while not concluding.done():
            # Cancelled again and again, we still may not leave a cell behind that runs on.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([concluding])
        if concluding.exception() is None:
            self._untold = concluding.result()[1]

    async def _conclude(
        self, cell: Cell, code: str, aftermath: Aftermath
    ) -> tuple[Result, Aftermath]:
        """Wait for the end of a cell, put an interpreter in place where it has lost its own."""
        ending = await cell.wait()
        await self.sandbox.interrupted()
        if not ending.finished and self._closed is None:
            aftermath = await self._replace(fresh=False)
        await cell.finish_spool()
        result = await self._calls.with_ledger(code, cell.result(ending, aftermath))
        return result, aftermath

    async def _ensure_alive(self) -> Aftermath:
        """Put an interpreter in place where there is none; return what that did to the state."""
        if self._interpreter.alive:
            return Aftermath()
        return await self._replace(fresh=False)

    async def _replace(self, *, fresh: bool) -> Aftermath:
        as_of, self.copied_cell = self.copied_cell, None
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
            renewed.listener = self
            return Aftermath("fresh", files_lost=True)
        return Aftermath("rewound", as_of) if copied else Aftermath("fresh")

    def _check_open(self) -> None:
        if self._closed is not None:
            raise SessionClosed(f"the session {self.id!r} has ended: {self._closed}")

    def _open_files(self) -> int:
        self._check_open()
        self.last_used = time.monotonic()
        return self._interpreter.sandbox.open_files()

    # The copy that waits

    def _plan_copy(self) -> None:
        self._cancel_copy()
        if self._rules.copy_after > 0 and self._closed is None:
            loop = asyncio.get_running_loop()
            self._copy_timer = loop.call_later(self._rules.copy_after, self._ask_for_copy)

    def _cancel_copy(self) -> None:
        if self._copy_timer is not None:
            self._copy_timer.cancel()
            self._copy_timer = None

    def _ask_for_copy(self) -> None:
        if self._closed is not None or not self._interpreter.alive:
            return
        if self.busy:
            self._plan_copy()
            return
        held = self._interpreter.sandbox.consumption().memory
        if held is not None and held > self.limits.memory * PRESSURE:
            return
        self._copy_asked_for = self.cells
        self._interpreter.send({"op": "copy"})

    # What the interpreter says (divingbell.interpreter.Listener)

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
            self.copy_refused = field_of(header, "reason", str)
            if self.copy_refused is None:
                self.copied_cell = self._copy_asked_for
        elif event == "variables":
            if self._variables is not None and not self._variables.done():
                self._variables.set_result(_variables_of(header))
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
        if self._variables is not None and not self._variables.done():
            self._variables.set_result([])

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
                    self._cancel_copy()
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


def _encode(code: str, context: Mapping[str, Any] | None) -> tuple[bytes, bytes]:
    if not isinstance(code, str):
        raise InvalidInput(f"code must be text, not {type(code).__name__}")
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the code is not valid text: {error.reason} at {error.start}") from None
    values = b""
    if context:
        for name in context:
            if not isinstance(name, str) or not name.isidentifier():
                raise InvalidInput(f"context: {name!r} can't be the name of a variable")
        try:
            values = json.dumps(dict(context), allow_nan=False).encode()
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


def _variables_of(header: frames.Header) -> list[Variable]:
    items = header.get("items")
    found = []
    for item in items if isinstance(items, list) else []:
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
