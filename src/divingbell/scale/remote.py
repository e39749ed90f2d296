"""A session on a node, as the front has it: what gives account of it is here, its code is there."""

import asyncio
import contextlib
import contextvars
import dataclasses
import json
import secrets
import socket
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

from divingbell.errors import DivingbellError
from divingbell.gateway.context import Asker, to_nobody
from divingbell.journal.events import CellEnded
from divingbell.models import Consumption, Event, Failure, Isolation, Limits, Result
from divingbell.principal import Principal
from divingbell.scale import forms, stumbles
from divingbell.scale.line import PIECE, Line, LineLost, Message, Stream
from divingbell.scale.link import Link, Opened, checked
from divingbell.scale.remote_command import RemoteCommand
from divingbell.scale.state import SessionState
from divingbell.scale.tunnel import carry
from divingbell.session.accounted import AccountedSession, SessionServices
from divingbell.session.calls import EFFECTS, MAX_RESULTS, Record, ToolGateway, Waiting
from divingbell.session.cancelling import see_through
from divingbell.session.commands.command import Exit
from divingbell.session.commands.command import Sink as CommandSink
from divingbell.session.commands.request import CommandRequest
from divingbell.session.inputs import CellInput
from divingbell.session.looks import Seen
from divingbell.session.options import SessionOptions
from divingbell.session.outcome import StateChange, state_note
from divingbell.session.transcript import MAX_EVENTS, Sink, most_rich
from divingbell.shares import weight
from divingbell.shares.running import cells
from divingbell_inside import frames

CLOSE_PATIENCE = 10.0
"""Seconds that a node may take to end a session, before its front goes on without its word."""
CANCEL_PATIENCE = 60.0
"""The same for a cell that is cancelled: its node ends it within its own grace."""
CALL_PATIENCE = 1.0
"""The same for calls of tools that a cell had under way when it was stopped."""
SPINNING = 0.05
"""Seconds of CPU time that a session which does nothing never uses between two looks."""
MAX_BREAKS = 20
"""Times that the line may break within one cell, before its node counts as lost to it."""
MAX_TOLD = 10_000
"""Messages of tools that one cell passes on."""
SLACK = 2
"""Times what the limits on output allow, beyond which the node breaks the rules."""


class Placer(Protocol):
    """Who knows where sessions are, and finds them another place where they have lost theirs."""

    async def place(
        self, principal: Principal, id: str, key: str, limits: Limits, options: SessionOptions
    ) -> tuple[Link, Opened]:
        """Open or join a session on a node.

        Raises:
            CapacityError, SandboxUnavailable: there is no place.
        """


class RemoteCell:
    """The cell that runs on a node, as calls of tools know it (divingbell.session.calls.Run)."""

    def __init__(
        self, number: int, sink: Sink, most_output: int, begun_in: StateChange | None = None
    ) -> None:
        self.number = number
        self.begun_in = begun_in
        """What was to be told of the state when it began: another one, and its place is new."""
        self.run = secrets.token_hex(8)
        """Its name on its node, where other fronts count cells of their own."""
        self.seen = 0
        """Messages that its node has sent, of its events and of what it tells of tables."""
        self.context = contextvars.copy_context()
        self.record = Record()
        self.stream: Stream | None = None
        self._sink = sink
        self._told = 0
        self._most_shown = SLACK * (most_output + most_rich(most_output))
        self._shown = self._shown_bytes = 0

    def call_began(self) -> None:
        """Leave the clock to the node."""

    def call_ended(self, call: Waiting, status: str, milliseconds: float) -> None:
        self.record.add(call, status, milliseconds)

    def tell(self, event: Event) -> None:
        self._told += 1
        if self._told == MAX_TOLD:
            words = "the tools send more messages than are shown; the rest is cut"
            self._sink(Event("notice", words, cell=self.number))
        elif self._told < MAX_TOLD:
            self._sink(dataclasses.replace(event, cell=self.number))

    def show(self, events: Iterable[Event]) -> None:
        """Pass on what its node says that it shows.

        Raises:
            FrameError: it is more than a node of ours would.
        """
        for event in events:
            self._shown += 1
            self._shown_bytes += forms.size_of(event)
            if self._shown > SLACK * MAX_EVENTS or self._shown_bytes > self._most_shown:
                raise frames.FrameError("a cell shows more than its limits allow")
            self._sink(event)

    def note(self, words: str) -> None:
        if self.stream is not None:
            self.stream.tell({"do": "note", "words": words})


class RemoteSession(AccountedSession):
    """A session on a node."""

    def __init__(
        self,
        identifier: str,
        principal: Principal,
        services: SessionServices,
        placer: Placer,
        gateway: ToolGateway | None,
        options: SessionOptions,
        link: Link,
        opened: Opened,
        on_close: Callable[["RemoteSession"], None],
    ) -> None:
        self._state = opened.state
        self._link = link
        self._line: Line | None = link.line
        self._isolation = opened.isolation
        self._placer = placer
        self._on_close = on_close
        self._placing = asyncio.Lock()
        self._lost: str | None = None
        """Why it has no place, where its node was lost."""
        self._cell: RemoteCell | None = None
        self._untold = StateChange()
        self._notes: list[str] = []
        """For the next result."""
        self._asked: dict[int, Stream] = {}
        """Calls of its code that wait for their answers."""
        self._unread = 0
        """Bytes of answers that its node has yet to read."""
        self._numbers = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        super().__init__(
            identifier,
            principal,
            services,
            opened.limits,
            self,
            gateway,
            _options_of(options, opened),
            opened.key,
        )
        self._opened_at = opened.opened_at
        self._cells = opened.state.cells
        link.sessions[self.key] = self
        self._note_opened()
        self._hear_of(opened)

    # What is shown of it

    @property
    def node(self) -> str:
        """The name of the node that holds it."""
        return self._link.node.name

    @property
    def alive(self) -> bool:
        return self._lost is None and self._state.alive

    @property
    def copied_cell(self) -> int | None:
        return self._state.copied_cell

    @property
    def copy_refused(self) -> str | None:
        return self._state.copy_refused

    @property
    def isolation(self) -> Isolation:
        return self._isolation

    def consumption(self) -> Consumption:
        return self._state.consumption

    def account(self) -> None:
        is_spinning = self._cpu.charge() > SPINNING
        if is_spinning and self._services.rates.is_overdrawn(self.principal.user):
            self._commands.end_background()

    # What its node says (divingbell.scale.link.Reached)

    def take_state(self, state: SessionState) -> None:
        self._state = state
        self._cells = max(self._cells, state.cells)
        used = time.monotonic() - max(0.0, time.time() - state.last_used)
        self.last_used = max(self.last_used, used)

    def ended_there(self, reason: str) -> None:
        if self._closed is None:
            self._closed = reason
            self._do(self._end())

    def called(self, stream: Stream, message: Message) -> None:
        self._numbers += 1
        number, header = self._numbers, message.header
        self._asked[number] = stream

        def heard(message: Message) -> bool:
            if message.header.get("do") == "cancel" or "error" in message.header:
                self._calls.cancel({"id": number})
            return True

        stream.on_message = heard
        if len(message.body) > frames.MAX_BODY:
            words = "the arguments are too long"
            refusal = {"id": number, "ok": False, "code": "tool_limit", "message": words}
            self._send(refusal, b"")
            return
        name = header.get("name")
        self._calls.begin(
            {"id": number, "name": name if type(name) is str else "?"}, message.body, self._cell
        )

    def _send(self, header: frames.Header, body: bytes) -> None:
        stream = self._asked.pop(header["id"], None)
        if stream is None or stream.ended:
            return
        told = {name: value for name, value in header.items() if name not in ("op", "id")}
        if "message" in told:  # of a server's: a header takes neither any length nor any character
            body = told.pop("message").encode("utf-8", "replace")
        if len(body) <= PIECE and self._link.is_pushed:
            stream.finish(told, body)
        else:
            self._do(self._finish(stream, told, body))

    async def _finish(self, stream: Stream, told: frames.Header, body: bytes) -> None:
        """Send a long answer, as its node reads it; one that asks and never reads is given up.

        What a server has that was connected for this call is there before the answer is.
        """
        self._unread += len(body)
        try:
            with contextlib.suppress(DivingbellError):
                await self._link.push_servers()
            if self._unread > MAX_RESULTS:
                stream.line.lose(f"{stream.line.name} does not read what it asks for")
            await stream.end(told, body)
        finally:
            self._unread -= len(body)

    async def _drained(self) -> None:
        if self._line is not None:
            await self._line.until_drained()

    def _charge(self, seconds: float) -> object:
        self._calls.charge(seconds)
        return None

    # Its place

    async def _placed(self) -> Line:
        """Return the line to the node that has it; where its node was lost, it gets another.

        Raises:
            SessionClosed: it has ended.
            CapacityError, SandboxUnavailable: there is no place for it.
        """
        self._check_open()
        line = self._line
        if line is not None and line.lost is None:
            return line
        async with self._placing:
            if self._line is None or self._line.lost is not None:
                await self._join()
            self._check_open()
            assert self._line is not None
            return self._line

    async def _join(self) -> None:
        before = self._link
        await before.again()
        link, opened = await self._placer.place(
            self.principal, self.id, self.key, self.limits, self.options
        )
        if opened.key != self.key:
            link.line.request({"op": "leave", "key": opened.key}).abandon()
            why = self._lost or before.given_up or f"the node {before.node.name} had lost it"
            self.ended_there(f"{why}; another program has begun it anew")
            self._check_open()
        self._calls.line_lost()
        self._asked.clear()
        if opened.made:
            where = self._lost or before.given_up or f"the node {before.node.name} had lost it"
            self._untold = StateChange("fresh", files_lost=True, reason=where)
            self._cpu.begin(self)
        before.sessions.pop(self.key, None)
        link.sessions[self.key] = self
        self._link, self._line, self._lost = link, link.line, None
        self._isolation = opened.isolation
        self.take_state(opened.state)
        if not opened.made:
            self._hear_of(opened)

    async def _prepare(self) -> None:
        await self._placed()
        await self._link.push_servers()

    def _hear_of(self, opened: Opened) -> None:
        """Ask how the cell ended that nobody was there for."""
        if opened.unheard is not None and self._cell is None and self._line is not None:
            # Asked before any other cell begins: the node keeps one outcome.
            asked = self._line.request({"op": "outcome", "key": self.key})
            self._do(self._hear_outcome(asked, *opened.unheard))

    async def _hear_outcome(self, asked: Stream, number: int, code: str) -> None:
        try:
            answer = await asked.receive()
            if answer.header.get("unknown") is True:
                return  # another front was told of it meanwhile
            result = await self._read(asked.line, answer)
        except DivingbellError as error:
            self._notes.append(f"how cell {number} ended is not known: {error}")
            return
        self._services.journal.note(CellEnded(self.principal, self.key, result.cell, code, result))
        words = "" if result.error is None else f": {result.error.type}: {result.error.message}"
        self._notes.append(
            f"cell {result.cell}, whose program went away while it ran, went on and ended with "
            f"the status {result.status}{words[:500]}"
        )

    # Cells

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
        cell = self._cell = RemoteCell(self.cells, sink, self.limits.output, self._untold)
        self._calls.asker = asker
        self._calls.adopt(cell)
        request: frames.Header = {
            "op": "run",
            "key": self.key,
            "cell": cell.number,
            "run": cell.run,
            "timeout": timeout,
            "tools": self._gateway.generation(self.key) if self._gateway else 0,
            "events": sink is not to_nobody,
            **given.lengths,
        }
        self._columns.begin_cell()
        if self._columns.wanted:
            request["columns"] = True
        if notes:
            request["notes"] = list(notes)
        try:
            with cells.run(self.key):
                result = await self._result_of(cell, request, given.body)
            if result.status not in ("ok", "killed"):
                result = await self._with_effects(result, cell)
            return await self._shown(result, code)
        finally:
            self._cell = None
            self._calls.end_run()
            self.last_used = time.monotonic()

    async def _result_of(self, cell: RemoteCell, request: frames.Header, body: bytes) -> Result:
        try:
            line = await self._placed()
            return await self._heard_out(cell, await line.request_with(request, body))
        except LineLost as error:
            return await self._after_loss(cell, error)

    async def _heard_out(self, cell: RemoteCell, stream: Stream) -> Result:
        """Show what a cell shows, and return its result."""
        cell.stream = stream
        line = stream.line
        try:
            while not (message := await stream.receive()).header.get("end"):
                cell.seen += 1
                if message.header.get("columns") is True:
                    self._columns.add(message.body)
                    continue
                checked(line, lambda: cell.show(_events_in(message)))
        except asyncio.CancelledError:
            await see_through(asyncio.create_task(self._cancel(cell, stream)))
            raise
        if message.header.get("unknown") is True:
            return self._killed(cell, "the line to its node broke, and how it ended is not known")
        return await self._read(line, message)

    async def _with_effects(self, result: Result, cell: RemoteCell) -> Result:
        """Return the result of a cell that failed with the calls that it made: which of them had
        left when it was stopped is known here, and not on the node."""
        await self._calls.cancelled(CALL_PATIENCE)
        notes = [note for note in result.notes if not note.startswith(EFFECTS)]
        if effects := cell.record.note_on_effects():
            notes.append(effects)
        return dataclasses.replace(result, notes=tuple(notes), calls=tuple(cell.record.calls))

    async def _cancel(self, cell: RemoteCell, stream: Stream | None) -> None:
        """Have the node end a cell, on a new line if need be; return once it has."""
        with contextlib.suppress(DivingbellError, TimeoutError):
            async with asyncio.timeout(CANCEL_PATIENCE):
                for _ in range(MAX_BREAKS):
                    stream = stream or await self._ask_again(cell)
                    if stream is None or await self._is_cancelled(stream):
                        return
                    stream = None

    async def _is_cancelled(self, stream: Stream) -> bool:
        try:
            stream.tell({"do": "cancel"})
            while not (await stream.receive()).header.get("end"):
                pass
            return True
        except LineLost:
            return False
        finally:
            stream.abandon()

    async def _after_loss(self, cell: RemoteCell, error: LineLost) -> Result:
        """Return the result of a cell whose line broke: it goes on, unless its node is lost."""
        why = str(error)
        for _ in range(MAX_BREAKS):
            asking = asyncio.create_task(self._ask_again(cell))
            try:
                stream = await asyncio.shield(asking)
                if stream is None:
                    break
                return await self._heard_out(cell, stream)
            except LineLost as broken:
                why = str(broken)
            except DivingbellError as worse:
                why = str(worse)
                break
            except asyncio.CancelledError:
                if not asking.done():
                    await see_through(asyncio.create_task(self._cancel_when(cell, asking)))
                raise
        why = self._link.given_up or why
        if self._line is None or self._line.lost is not None:
            self._lost = why
        lost = self._killed(cell, f"{why}; the cell was lost with it")
        return dataclasses.replace(lost, state="fresh")

    async def _ask_again(self, cell: RemoteCell) -> Stream | None:
        """Ask a node for the rest of a cell, on a new line; None where it does not have it."""
        if not await self._link.again():
            return None
        line = await self._placed()
        if self._untold is not cell.begun_in:
            return None  # it has begun anew
        asked = {"op": "outcome", "key": self.key, "run": cell.run, "seen": cell.seen}
        return line.request(asked)

    async def _cancel_when(self, cell: RemoteCell, asking: "asyncio.Task[Stream | None]") -> None:
        with contextlib.suppress(DivingbellError):
            if (stream := await asking) is not None:
                await self._cancel(cell, stream)

    def _killed(self, cell: RemoteCell, why: str) -> Result:
        effects = cell.record.note_on_effects()
        return Result(
            "killed",
            error=Failure("Killed", why),
            cell=cell.number,
            notes=(effects,) if effects else (),
            calls=tuple(cell.record.calls),
        )

    async def _read(self, line: Line, message: Message) -> Result:
        header, body = message

        def read(body: bytes) -> Result:
            return forms.read_result(*forms.parsed(header, body))

        try:
            if field_size(header) > forms.LARGE:
                result = await weight.charged(lambda: read(body), self._charge)
            else:
                result = read(body)
            state = forms.read(SessionState, header.get("state"))
        except frames.FrameError as error:
            line.lose(f"{line.name} gave a result that is none: {error}")
            raise LineLost(f"{line.name} gave a result that is none") from None
        self.take_state(state)
        self._cells = max(self._cells, result.cell)
        return result

    async def _shown(self, result: Result, code: str) -> Result:
        """Return a result as its reader may see it, with what no other has told."""
        stumble, result = stumbles.header_of(result)
        result = self._services.hints.added(result, stumble, self.principal.user)
        change, notes = self._untold, list(self._notes)
        told = list(notes)
        if change.state != "kept" and result.status != "killed":
            told += [change.reason, state_note(change)]
            result = dataclasses.replace(result, state="fresh", state_cell=None)
        if told:
            result = dataclasses.replace(result, notes=(*told, *result.notes))
        result = await self._passed_out(result, code)
        if result.status != "killed" and self._untold is change:
            self._untold = StateChange()
        del self._notes[: len(notes)]
        return result

    async def interrupt(self) -> bool:
        if not self.busy:
            return False
        header, _ = await self._ask({"op": "interrupt"})
        return header.get("was") is True

    async def reset(self) -> None:
        async with self._queue:
            self._check_open()
            await self._ask({"op": "reset"})
            if not self._untold.files_lost:
                self._untold = StateChange()

    async def _ask(self, request: frames.Header, body: bytes = b"") -> Message:
        """Ask the node for something of this session; return the answer."""
        line = await self._placed()
        stream = await line.request_with({**request, "key": self.key}, body)
        try:
            message = await stream.receive()
        except asyncio.CancelledError:
            stream.tell({"do": "cancel"})
            stream.abandon()
            raise
        self.last_used = time.monotonic()
        return message

    # Variables and files

    async def look(self, request: frames.Header, body: bytes = b"") -> Seen:
        async with self._queue:
            return await self._see({"op": "look", "request": request}, body)

    async def exchange(
        self, request: frames.Header, body: bytes = b"", *, changes: bool = False
    ) -> Seen:
        async with self._queue:
            return await self._see({"op": "exchange", "request": request, "changes": changes}, body)

    async def _see(self, request: frames.Header, body: bytes) -> Seen:
        self._check_open()
        self._cpu.charge()
        self._services.rates.check_cpu(self.principal.user)
        header, answer = await self._ask(request, body)
        line = await self._placed()
        items, raw = checked(line, lambda: forms.parsed(header, answer, forms.LIGHT))
        return Seen(items if type(items) is list else [], bytes(raw))

    def open_files(self) -> int:
        self.guard.check()
        self.touch()
        ours, theirs = socket.socketpair()
        # Also if it is cancelled before it has begun: else who reads would wait for ever.
        self._do(self._tunnel(ours)).add_done_callback(lambda _: ours.close())
        return theirs.detach()

    async def _tunnel(self, end: socket.socket) -> None:
        try:
            line = await self._placed()
            stream = line.request({"op": "files", "key": self.key})
        except DivingbellError as error:
            refusal = {"event": "refused", "reason": str(error)}
            with contextlib.suppress(OSError):
                end.send(frames.pack(refusal))
            return
        await carry(end.detach(), stream, opened_here=True)

    def touch(self) -> None:
        super().touch()
        if self._line is not None:
            self._line.tell({"op": "touch", "key": self.key})

    # Commands

    async def start_command(
        self,
        number: int,
        text: str,
        request: CommandRequest,
        background: bool,
        sink: CommandSink,
        exit: Exit,
    ) -> RemoteCommand:
        line = await self._placed()
        self.last_used = time.monotonic()
        sizes, body = forms.written(
            {"text": text, "words": json.loads(request.words), "cwd": request.cwd,
             "timeout": request.timeout},
            [request.input],
        )  # fmt: skip
        asked = {"op": "command", "key": self.key, "background": background, **sizes}
        stream = await line.request_with(asked, body)
        return RemoteCommand(
            number, text, stream, background, sink, exit, self._calls.charge, self.limits.output
        )

    # Its end

    async def close(self, reason: str = "it was closed") -> None:
        await self._leave({"op": "close", "reason": reason}, reason)

    async def let_go(self) -> None:
        await self._leave({"op": "leave"}, "it was closed")

    async def leave(self) -> None:
        """Let go of it without ending it: others may join it, wherever they are."""
        await self._leave(None, "this program left it")

    async def _leave(self, request: frames.Header | None, reason: str) -> None:
        try:
            if self._closed is None:
                self._closed = reason
                if request is not None and self._line is not None and self._line.lost is None:
                    with contextlib.suppress(DivingbellError, TimeoutError):
                        async with asyncio.timeout(CLOSE_PATIENCE):
                            stream = self._line.request({**request, "key": self.key})
                            await stream.receive()
                self._commands.lose(f"the session ended: {reason}")
        finally:  # also of one whose end nobody waits for any more
            await self._end()

    async def _end(self) -> None:
        """Let go of all that belongs to it here."""
        self._on_close(self)
        self._link.sessions.pop(self.key, None)
        current = asyncio.current_task()
        for task in list(self._tasks):
            if task is not current:
                task.cancel()
        self._cpu.charge()
        await self._calls.close()
        await self._commands.closed()
        self._note_ended()

    def _do(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._warn("something of it failed: %s", error)


def field_size(header: frames.Header) -> int:
    size = header.get("json")
    return size if type(size) is int else 0


def _events_in(message: Message) -> list[Event]:
    items, raw = forms.parsed(message.header, message.body, forms.LIGHT)
    if type(items) is not list:
        raise frames.FrameError("events that are none")
    return [forms.read_event(item, raw) for item in items]


def _options_of(options: SessionOptions, opened: Opened) -> SessionOptions:
    """Return the options that are in force; its environment is known to who opened it."""
    env = options.env if opened.made else {}
    return SessionOptions(env, opened.labels, opened.idle_timeout)
