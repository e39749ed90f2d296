"""An upstream server whose connection is in the shared gateway: asked over the replica's line."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import mcp_types
from pydantic import TypeAdapter

from divingbell import logs
from divingbell.errors import DivingbellError, NotRecorded, ToolFailed
from divingbell.gateway.callers import Caller
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.scale.gateway import wire
from divingbell.scale.gateway.failures import checked
from divingbell.scale.gateway.link import PATIENCE, GatewayLink
from divingbell.scale.line import LineLost, Message, Stream
from divingbell.session.intake import field_of
from divingbell.settings.servers import Server
from divingbell_inside import frames

log = logs.logger("divingbell")

AGAIN_AFTER = 1.0
"""Seconds after which a connection that the gateway has refused is asked for again."""
MOST_UNTOLD = 64
"""Messages of a call that its caller has not taken yet; more are dropped."""

Made = TypeVar("Made")


class RemoteUpstream:
    """A server that the shared gateway is connected to; see `Upstream`, whose names it has.

    With a `session` it is a connection of that session alone, of whichever replicas serve it.
    """

    spool: Path | None = None

    def __init__(
        self,
        server: Server,
        link: GatewayLink,
        *,
        on_tools: Callable[[list[mcp_types.Tool]], None],
        on_changed: Callable[[Any], None] | None = None,
        on_state: Callable[[Any], None] | None = None,
        session: str | None = None,
    ) -> None:
        self.server = server
        self._link = link
        self._on_tools, self._on_changed, self._on_state = on_tools, on_changed, on_state
        self._session = session
        self._state = "idle"
        self._told: wire.Told | None = None
        self._away = ""
        self._tools: list[mcp_types.Tool] = []
        self._news = asyncio.Event()
        self._attached = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._exchanges: set[Stream] = set()

    @property
    def state(self) -> str:
        """The state of its connection."""
        return self._state

    @property
    def reason(self) -> str:
        """The reason why it is not ready, in words without secrets; empty if it is."""
        if self._state == "stopped":
            return "it was stopped"
        return self._away or ("" if self._told is None else self._told.reason)

    @property
    def tools(self) -> list[mcp_types.Tool]:
        """The tools as the server last listed them, now or when it last ran."""
        return self._tools

    @property
    def instructions(self) -> str | None:
        """The server's own words about itself."""
        return None if self._told is None else self._told.instructions

    @property
    def protocol_version(self) -> str | None:
        """The version of the protocol that the server spoke when it was last heard."""
        return None if self._told is None else self._told.protocol_version

    @property
    def pid(self) -> int | None:
        """The process of a stdio server that runs, on the gateway's machine."""
        return None if self._told is None else self._told.pid

    @property
    def log_path(self) -> Path:
        """The file that its stderr goes to, on the gateway's machine."""
        return Path() if self._told is None else Path(self._told.log_path)

    def start(self, *, lazy: bool = True) -> None:
        """Have it connected to, or, if its tools are known from last time, when it is called."""
        if self._watching is None and self._state != "stopped":
            self._set_state("connecting")
            self._watching = asyncio.create_task(self._watch(lazy))

    def retry(self) -> None:
        """Try again now instead of later, after a sign-in for instance."""
        with contextlib.suppress(LineLost):  # it is tried anew as soon as the gateway is back
            self._link.laid().tell({"op": "retry", **self._named()})

    async def stop(self) -> None:
        """Let go of it; a connection of one session ends with the last replica that has it."""
        watching, self._watching = self._watching, None
        self._set_state("stopped")
        self._attached.clear()
        for stream in self._exchanges:
            stream.tell({"do": "cancel"})
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])

    async def ready(self, timeout: float | None = None) -> None:
        """Return when the server can be called; wait at most `timeout` seconds.

        Raises:
            ToolFailed: it can't be reached; the message says why.
        """
        with self._as_failures("ready", None):
            stream = await self._begin("ready", {"timeout": timeout}, b"")
            await self._ended(stream, None, None)
        with contextlib.suppress(TimeoutError):  # its news come by another stream
            async with asyncio.timeout(PATIENCE):
                while self._state in ("idle", "connecting"):
                    self._news.clear()
                    await self._news.wait()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
        caller: Caller | None = None,
        departure: Departure | None = None,
    ) -> mcp_types.CallToolResult:
        """Call a tool; a result with `is_error` is a result. Cancelling cancels the call upstream.

        With a `departure` it is made ready there, and held until that allows it.

        Raises:
            ToolFailed: no result came, or none that makes sense.
            NotRecorded: it must not leave.
        """
        given = None if arguments is None else dict(arguments)
        return await self._ask(
            "call", name, given, wire.CALLED, caller, timeout, departure=departure
        )

    async def read_resource(
        self, uri: str, caller: Caller | None = None, *, timeout: float | None = None
    ) -> mcp_types.ReadResourceResult:
        """Read a resource. Raises: as `call_tool`."""
        return await self._ask("read", uri, None, wire.READ, caller, timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        caller: Caller | None = None,
        *,
        timeout: float | None = None,
    ) -> mcp_types.GetPromptResult:
        """Get a prompt. Raises: as `call_tool`."""
        given = None if arguments is None else dict(arguments)
        return await self._ask("prompt", name, given, wire.GOT, caller, timeout)

    async def complete(
        self,
        ref: mcp_types.ResourceTemplateReference | mcp_types.PromptReference,
        argument: mcp_types.CompletionArgument,
        context: Mapping[str, str] | None = None,
    ) -> mcp_types.CompleteResult:
        """Return the ways in which a value could go on. Raises: as `call_tool`."""
        known = None if context is None else dict(context)
        asked = wire.Completion(ref=ref, argument=argument, context=known)
        return await self._ask("complete", "completion", asked, wire.COMPLETED)

    async def list_resources(self) -> list[mcp_types.Resource]:
        """Return all resources; none if the server has no such thing. Raises: as `call_tool`."""
        return await self._ask("list_resources", "its list", None, wire.RESOURCES)

    async def list_resource_templates(self) -> list[mcp_types.ResourceTemplate]:
        """Return all templates of resources. Raises: as `call_tool`."""
        return await self._ask("list_templates", "its list", None, wire.TEMPLATES)

    async def list_prompts(self) -> list[mcp_types.Prompt]:
        """Return all prompts. Raises: as `call_tool`."""
        return await self._ask("list_prompts", "its list", None, wire.PROMPTS)

    # Its news

    async def _watch(self, lazy: bool) -> None:
        while True:
            line = await self._link.until_laid()
            stream: Stream | None = None
            try:
                stream = line.request({"op": "attach", "lazy": lazy, **self._named()})
                while True:
                    self._take(await wire.read(wire.TOLD, checked(await stream.receive()).body))
            except LineLost as error:
                self._attached.clear()
                self._away = f"the gateway of all replicas is away: {error}"
                self._set_state("connecting")
            except (DivingbellError, frames.FrameError) as error:
                self._attached.clear()
                self._away = str(error)
                self._set_state("failed")
                await asyncio.sleep(AGAIN_AFTER)
            finally:
                if stream is not None:
                    stream.tell({"do": "cancel"})
                    stream.abandon()

    def _take(self, told: wire.Told) -> None:
        self._told, self._away = told, ""
        if told.tools is not None:
            self._tools = told.tools
            self._on_tools(told.tools)
        for kind in told.changes:
            if self._on_changed is not None:
                self._on_changed(kind)
        self._set_state(told.state)
        self._attached.set()

    def _set_state(self, state: str) -> None:
        if state != self._state and self._state != "stopped":
            self._state = state
            if self._on_state is not None:
                self._on_state(state)
        self._news.set()

    # Its exchanges

    def _named(self) -> frames.Header:
        if self._session is None:
            return {"server": self.server.name}
        return {"server": self.server.name, "session": self._session}

    async def _begin(self, op: str, more: frames.Header, body: bytes) -> Stream:
        if self._state == "stopped":
            raise self._stopped()
        self.start()
        line = await self._link.line(self.server.name)
        if not self._attached.is_set():
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._attached.wait()
            except TimeoutError:
                raise self._link.away(self.server.name) from None
            line = await self._link.line(self.server.name)
        return await line.request_with({"op": op, **self._named(), **more}, body)

    def _stopped(self) -> ToolFailed:
        words = f"the server {self.server.name} is not available: it was stopped"
        return ToolFailed(words, "tool_unavailable")

    async def _ask(
        self,
        op: str,
        what: str,
        given: Any,
        result: TypeAdapter[Made],
        caller: Caller | None = None,
        timeout: float | None = None,
        *,
        departure: Departure | None = None,
    ) -> Made:
        header: frames.Header = {"what": what, "timeout": timeout, "held": departure is not None}
        if caller is not None:
            header |= {"caller": True, "caller_session": caller.session}
        with self._as_failures(what, departure):
            stream = await self._begin(op, header, await wire.written(given))
            message = await self._ended(stream, caller, departure)
            return await wire.read(result, message.body)

    @contextlib.contextmanager
    def _as_failures(self, what: str, departure: Departure | None) -> Iterator[None]:
        """Tell of what goes wrong on the line as of a call that failed."""
        name = f"{self.server.name}.{what[:200]}"
        try:
            yield
        except (ToolFailed, NotRecorded):
            raise
        except frames.FrameError as error:
            raise ToolFailed(f"{name}: the result makes no sense: {error}", "tool_result") from None
        except LineLost as error:
            if departure is not None and departure.is_held:
                raise self._link.away(name) from None
            raise ToolFailed(
                f"{name}: the gateway that all replicas share was lost during the call; it may "
                f"have been made, or not ({error})",
                "tool_unavailable",
            ) from None
        except DivingbellError as error:
            raise ToolFailed(f"{name}: {error}") from None

    async def _ended(
        self, stream: Stream, caller: Caller | None, departure: Departure | None
    ) -> Message:
        """Return the last message of an exchange; until then do what the gateway asks for."""
        exchange = _Exchange(stream, caller)
        leaving = None
        if departure is not None:
            leaving = asyncio.create_task(exchange.let_go(departure))
        self._exchanges.add(stream)
        try:
            while True:
                message = await stream.receive()
                if message.header.get("end") is True:
                    if "failed" in message.header and self._state == "stopped":
                        raise self._stopped()
                    return checked(message)
                exchange.take(message)
        except BaseException:
            stream.tell({"do": "cancel"})
            stream.abandon()
            if exchange.unrecorded is not None:
                raise exchange.unrecorded from None
            raise
        finally:
            self._exchanges.discard(stream)
            if leaving is not None:
                leaving.cancel()
            exchange.stop()


class _Exchange:
    """A request under way: what is told of it, and what is asked in between."""

    def __init__(self, stream: Stream, caller: Caller | None) -> None:
        self.unrecorded: NotRecorded | None = None
        """Why it must not leave."""
        self._stream = stream
        self._caller = caller
        self._telling: set[asyncio.Task[None]] = set()
        self._asking: dict[int, asyncio.Task[None]] = {}

    async def let_go(self, departure: Departure) -> None:
        """Let the request leave the gateway, once it may."""
        try:
            await departure.allowed()
        except NotRecorded as error:
            self.unrecorded = error
            self._stream.tell({"do": "cancel"})
        else:
            self._stream.tell({"do": "go"})

    def take(self, message: Message) -> None:
        """Take what the gateway says in between."""
        header, caller = message.header, self._caller
        if caller is None:
            return
        number = field_of(header, "number", int, 0)
        if header.get("do") == "answered":
            if (asking := self._asking.get(number)) is not None:
                asking.cancel()
        elif (asked := field_of(header, "ask", str)) is not None:
            task = asyncio.create_task(self._answer(caller, asked, number, message.body))
            self._asking[number] = task
            task.add_done_callback(lambda _: self._asking.pop(number, None))
        elif (told := field_of(header, "told", str)) and len(self._telling) < MOST_UNTOLD:
            self._keep(self._tell(caller, told, message.body))

    def stop(self) -> None:
        """Ask nobody any longer; what was told is passed on to its end."""
        for task in self._asking.values():
            task.cancel()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, caller: Caller, kind: str, body: bytes) -> None:
        try:
            if kind == "progress":
                made = await wire.read(wire.PROGRESS, body)
                await caller.progress(made.progress, made.total, made.message)
            else:
                await caller.log(await wire.read(wire.LOGGED, body))
        except Exception as error:  # as in this process: the call itself goes on
            log.debug("a message about a call was not taken: %s", type(error).__name__)

    async def _answer(self, caller: Caller, kind: str, number: int, body: bytes) -> None:
        said: Any
        try:
            if kind == "elicit":
                said = await caller.elicit(await wire.read(wire.ELICIT, body))
            else:
                said = await caller.sample(await wire.read(wire.SAMPLE, body))
        except Exception as error:
            log.warning("a question could not be passed on: %s", type(error).__name__)
            said = mcp_types.ErrorData(
                code=mcp_types.INVALID_REQUEST, message="the caller could not be asked"
            )
        answer = {"do": "answer", "answer": number}
        with contextlib.suppress(LineLost):  # the call is over
            await self._stream.send(answer, await wire.written(said))
