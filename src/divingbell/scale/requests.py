"""The requests of fronts, as a node answers them: sessions opened, cells run, files passed on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Protocol

from divingbell import logs
from divingbell.command import CommandEvent
from divingbell.errors import DivingbellError, SandboxUnavailable, SessionClosed
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.context import to_nobody
from divingbell.models import Result
from divingbell.principal import Principal
from divingbell.scale import forms
from divingbell.scale.answers import Answers, Handler
from divingbell.scale.door import LineDoor
from divingbell.scale.held import MAX_KEPT, HeldSession, Outcome
from divingbell.scale.line import Line, LineLost, Message, Stream
from divingbell.scale.passing import Events
from divingbell.scale.tunnel import carry
from divingbell.session.commands.request import CommandRequest
from divingbell.session.engine import Engine
from divingbell.session.inputs import CellInput
from divingbell.session.intake import field_of
from divingbell.session.options import SessionOptions
from divingbell.shares import weight
from divingbell_inside import frames

log = logs.logger("divingbell")

NEVER = -1.0
"""An idle timeout that is infinite: JSON has no word for it."""
MAX_SOURCE = 20_000
"""Characters of code that is kept with the outcome of its cell."""
MAX_RUN = 64
"""Characters of the name that a front has for a cell."""
CLIENT = "node"


class Placed(Protocol):
    """The node, as far as its requests have to know it."""

    engine: Engine
    door: LineDoor
    servers: Folder
    sessions: dict[str, HeldSession]

    def check_may_make(self, number: int) -> bool:
        """Whether a session may be made for this placing; if not, it is to be placed again.

        Raises:
            SandboxUnavailable: the node is being drained.
        """

    async def own(self) -> None:
        """Return once it is sure that the sessions are this node's own."""


class Requests(Answers):
    """Answers what fronts ask of a node."""

    def __init__(self, node: Placed) -> None:
        handlers: dict[str, Handler] = {
            "open": self._open,
            "run": self._run,
            "outcome": self._outcome,
            "look": self._look,
            "exchange": self._exchange,
            "command": self._command,
            "files": self._files,
            "interrupt": self._interrupt,
            "reset": self._reset,
            "leave": self._leave,
            "close": self._close,
            "servers": self._servers,
        }
        super().__init__(handlers, node.own)
        self._node = node

    def heard(self, line: Line, message: Message) -> None:
        """Take a word that wants no answer (divingbell.scale.line.OnWord)."""
        if message.header.get("op") == "touch":
            held = self._node.sessions.get(field_of(message.header, "key", str, ""))
            if held is not None and line in held.holders and not held.session.closed:
                held.session.touch()

    def _held(self, line: Line, message: Message) -> HeldSession:
        """Return the session that a request is about, which this front must hold."""
        held = self._node.sessions.get(field_of(message.header, "key", str, ""))
        if held is None or line not in held.holders:
            raise SessionClosed("the node does not have that session any more")
        return held

    # Sessions

    async def _open(self, line: Line, stream: Stream, message: Message) -> None:
        header, node = message.header, self._node
        user, id, key, number = header["user"], header["id"], header["key"], header["number"]
        if not (type(user) is str and type(id) is str and type(key) is str and type(number) is int):
            raise frames.FrameError("a session without a name")
        principal = Principal(user, client=CLIENT)
        found = node.engine.find(id, principal)
        if found is None and not node.check_may_make(number):
            await stream.end({"again": True})
            return
        form, _ = forms.parsed(header, message.body)
        session = await node.engine.open(
            id, principal, dict(form["limits"]), _options_in(form["options"]), key=key
        )
        held = node.sessions.get(session.key)
        if held is None:
            local = node.engine.kept(user, id)
            if local is None or local.key != session.key:
                raise SessionClosed("the session has ended just now")
            held = node.sessions[session.key] = HeldSession(local, number)
        made = session.key == key and not held.holders and not held.left_behind
        held.number = max(held.number, number)
        if line in held.holders:  # this front has opened it already; one hold is enough
            held.left_behind.append(session)
        else:
            held.holders[line] = session
        if line.lost is not None:
            held.leave(line)
        await stream.end(*self._description(held, made=made))

    def _description(self, held: HeldSession, *, made: bool) -> tuple[frames.Header, bytes]:
        session = held.session
        idle = session.idle_timeout
        outcome, unheard = held.last, None
        is_orphan = held.front is None or held.front.lost is not None  # else its front hears it
        if outcome is not None and not outcome.heard and is_orphan:
            unheard = {"cell": outcome.cell, "source": outcome.source}
        sizes, body = forms.written(
            {
                "limits": asdict(session.limits),
                "isolation": asdict(session.isolation),
                "labels": dict(session.labels),
                "idle_timeout": NEVER if idle == float("inf") else idle,
                "opened_at": session.opened_at,
                "state": forms.of(held.state()),
                "unheard": unheard,
            }
        )
        return {"key": session.key, "made": made, **sizes}, body

    async def _leave(self, line: Line, stream: Stream, message: Message) -> None:
        """Let a front go; the last one that goes with a word ends the session."""
        held = self._held(line, message)
        holders = [held.holders.pop(line)]
        if not held.holders:
            holders += held.left_behind
            held.left_behind = []
        for holder in holders:
            await self._node.engine.release(holder)
        await stream.end({})

    async def _close(self, line: Line, stream: Stream, message: Message) -> None:
        held = self._held(line, message)
        await held.session.close(field_of(message.header, "reason", str, "it was closed")[:500])
        await stream.end({})

    async def _interrupt(self, line: Line, stream: Stream, message: Message) -> None:
        await stream.end({"was": await self._held(line, message).session.interrupt()})

    async def _reset(self, line: Line, stream: Stream, message: Message) -> None:
        await self._held(line, message).session.reset()
        await stream.end({})

    # Cells

    async def _run(self, line: Line, stream: Stream, message: Message) -> None:
        held, header = self._held(line, message), message.header
        given = _input_in(header, message.body)
        number, timeout = header["cell"], header.get("timeout")
        if type(number) is not int or not (timeout is None or type(timeout) in (int, float)):
            raise frames.FrameError("a cell without a number")
        run = header["run"]
        if type(run) is not str or len(run) > MAX_RUN:
            raise frames.FrameError("a cell without a name")
        notes = [str(note) for note in header.get("notes", ())]
        self._node.door.generations[held.key] = field_of(header, "tools", int, 0)
        session = held.session
        is_shown, is_told = header.get("events") is True, header.get("columns") is True
        events = Events(stream) if is_shown or is_told else None
        running = asyncio.current_task()
        assert running is not None
        is_cancelled = False

        def heard(message: Message) -> bool:
            nonlocal is_cancelled
            match message.header.get("do"):
                case "cancel":
                    is_cancelled = True
                    running.cancel()
                case "note":
                    session.note(field_of(message.header, "words", str, "")[:2000])
            return True

        stream.listen(heard)
        held.front = line
        source = given.source[:MAX_SOURCE].decode("utf-8", "replace")
        form = asyncio.get_running_loop().create_future()
        outcome = Outcome(number, source, form, heard, events)
        held.begin(run, outcome)
        form.add_done_callback(_seen)
        try:
            result = await session.execute(
                number,
                given,
                timeout,
                events.take if events is not None and is_shown else to_nobody,
                notes,
                events.tell_columns if events is not None and is_told else None,
            )
            outcome.cell = result.cell
            packed = await _packed(result, held)
            if len(packed[1]) <= MAX_KEPT or outcome.is_awaited:
                form.set_result(packed)
            try:
                if events is not None:
                    await events.all_left(stream)
                await stream.end(*packed)
                outcome.heard = True
            finally:
                if not form.done():
                    form.set_result(await _packed(_bare(result), held))
        except asyncio.CancelledError:
            outcome.heard = is_cancelled
            if not is_cancelled:
                raise
            stream.fail(DivingbellError("the cell was cancelled"))
        except LineLost:
            raise
        except BaseException as error:
            outcome.heard = not isinstance(error, SandboxUnavailable)
            raise
        finally:
            form.cancel()

    async def _outcome(self, line: Line, stream: Stream, message: Message) -> None:
        """Answer with the result of a cell, once it has one: its front had lost the line.

        The front that ran it names it, and gets its events from where the line broke. Another
        front gets the result of the last cell that nobody has heard of.
        """
        held, run = self._held(line, message), message.header.get("run")
        outcome = held.last if run is None else held.outcomes.get(run)
        if outcome is None or (run is None and outcome.heard):
            await stream.end({"unknown": True})
            return
        held.front = line
        events = outcome.events if run is not None else None
        if run is not None:
            stream.listen(outcome.hear)
        if events is not None:
            events.again(stream, field_of(message.header, "seen", int, 0))
        outcome.is_awaited = True
        try:
            header, body = await asyncio.shield(outcome.form)
        except asyncio.CancelledError:
            if not outcome.form.cancelled():
                raise
            raise SandboxUnavailable("the cell broke off, and left no result") from None
        if events is not None:
            await events.all_left(stream)
        await stream.end(dict(header), body)
        outcome.heard = True

    def given_up(self, handler: Handler, line: Line, message: Message) -> None:
        """Cancel a cell whose front asked for the rest of it, and gave it up in the same breath."""
        if handler != self._outcome:
            return
        held = self._node.sessions.get(field_of(message.header, "key", str, ""))
        if held is None or line not in held.holders:
            return
        outcome = held.outcomes.get(field_of(message.header, "run", str, ""))
        if outcome is not None:
            outcome.hear(Message({"do": "cancel"}))

    async def _look(self, line: Line, stream: Stream, message: Message) -> None:
        request = _request_in(message.header)
        seen = await self._held(line, message).session.look(request, message.body)
        await _end_seen(stream, seen.items, seen.body)

    async def _exchange(self, line: Line, stream: Stream, message: Message) -> None:
        request, changes = _request_in(message.header), message.header.get("changes") is True
        session = self._held(line, message).session
        seen = await session.exchange(request, message.body, changes=changes)
        await _end_seen(stream, seen.items, seen.body)

    async def _files(self, line: Line, stream: Stream, message: Message) -> None:
        descriptor = self._held(line, message).session.open_files()
        await carry(descriptor, stream, opened_here=False)

    # Commands

    async def _command(self, line: Line, stream: Stream, message: Message) -> None:
        held, header = self._held(line, message), message.header
        session = held.session
        form, raw = forms.parsed(header, message.body)
        words = form["words"]
        words["env"] = {**session.environment, **words["env"]}
        request = CommandRequest(
            json.dumps(words).encode(), str(words["cwd"]), bytes(raw), form["timeout"]
        )
        told: asyncio.Queue[CommandEvent | None] = asyncio.Queue()
        background = header.get("background") is True
        command = await session.start_requested(
            str(form["text"]), request, background, _drop if background else told.put_nowait
        )
        command.task.add_done_callback(lambda _: told.put_nowait(None))

        def heard(message: Message) -> bool:
            if message.header.get("do") == "stop":
                reason = message.header.get("reason")
                command.stop("rate" if reason == "rate" else "cancelled")
            return True

        stream.listen(heard)
        await stream.send({"began": command.pid})
        # Of one in the background all is passed on, to whoever may read along.
        events = command.stream() if background else _until_none(told)
        async with contextlib.aclosing(events):
            async for event in events:
                if event.type != "done":
                    sizes, body = forms.written(forms.of(event))
                    await stream.send(sizes, body)
        result = await command.wait()
        sizes, body = forms.written(forms.of(result))
        await stream.end({**sizes, "state": forms.of(held.state())}, body)

    # The files of /servers

    async def _servers(self, line: Line, stream: Stream, message: Message) -> None:
        """Take over the files that a front has, of which only those are sent that are new."""
        form, _ = forms.parsed(message.header, message.body)
        folder = self._node.servers
        wanted = {str(path): str(digest) for path, digest in form.items()}
        missing = await asyncio.to_thread(folder.missing, wanted)
        sizes, body = forms.written([*missing])
        await stream.send(sizes, body)
        new: dict[str, bytes] = {}
        for path in missing:
            new[path] = (await stream.receive()).body
        await asyncio.to_thread(folder.take_over, wanted, new)
        await stream.end({})


def _drop(event: CommandEvent) -> None:
    """Drop an event that is passed on another way."""


async def _until_none(
    events: "asyncio.Queue[CommandEvent | None]",
) -> AsyncGenerator[CommandEvent, None]:
    while (event := await events.get()) is not None:
        yield event


def _seen(form: "asyncio.Future[Any]") -> None:
    """Nobody has to ask for an outcome."""
    if not form.cancelled():
        form.exception()


def _bare(result: Result) -> Result:
    """Return only how a cell ended, whose result is too large to be kept for a front to come."""
    words = "its output was too long to be kept while the line to its node was broken"
    return replace(result, value=None, outputs=(), notes=(*result.notes, words))


async def _packed(result: Result, held: HeldSession) -> tuple[frames.Header, bytes]:
    state = forms.of(held.state())

    def pack(result: Result) -> tuple[dict[str, int], bytes]:
        packing = forms.Packing()
        return forms.written(packing.result(result), packing.raw)

    sizes, body = await weight.beside(pack, result)
    return {**sizes, "state": state}, body


async def _end_seen(stream: Stream, items: list[Any], body: bytes) -> None:
    sizes, form = forms.written(items)
    await stream.end(dict(sizes), form + body)


def _input_in(header: frames.Header, body: bytes) -> CellInput:
    variables, tokens = header["context"], header["tokens"]
    if not (type(variables) is int and type(tokens) is int):
        raise frames.FrameError("an input of no size")
    if not (variables >= 0 and tokens >= 0 and variables + tokens <= len(body)):
        raise frames.FrameError("an input of no size")
    source = variables + tokens
    return CellInput(body[source:], body[:variables], body[variables:source])


def _request_in(header: frames.Header) -> frames.Header:
    request = header["request"]
    if type(request) is not dict or "look" in request:
        raise frames.FrameError("a look that is none")
    return request


def _options_in(form: Any) -> SessionOptions:
    idle = form["idle_timeout"]
    return SessionOptions(
        MappingProxyType({str(name): str(value) for name, value in form["env"].items()}),
        MappingProxyType({str(name): str(value) for name, value in form["labels"].items()}),
        float("inf") if idle == NEVER else idle,
    )
