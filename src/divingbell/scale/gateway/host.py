"""The process that has the servers of all replicas, with their secrets.

It knows nothing of Ray. What calls may be made is decided before, in the pipeline of the replica
that runs a call: whoever knows the secret of this process is one.
"""

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from divingbell import logs
from divingbell.errors import NotRecorded, ToolFailed
from divingbell.gateway.policy.pins import Pins
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.parts import Home, kept_pins, upstreams_of
from divingbell.scale import greeting
from divingbell.scale.answers import Answers, Handler
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway import wire
from divingbell.scale.gateway.accounts import Accounts
from divingbell.scale.gateway.callers import LineCaller
from divingbell.scale.gateway.connections import Connections, Watcher
from divingbell.scale.gateway.failures import end_failed
from divingbell.scale.gateway.shared_pins import PinKeeper
from divingbell.scale.gateway.shared_totals import TotalsKeeper
from divingbell.scale.gateway.told_settings import LoadedSettings
from divingbell.scale.line import Line, Message, Stream
from divingbell.scale.listener import Listener
from divingbell.session.intake import field_of
from divingbell.settings.servers import Server
from divingbell.shares import loop_thread
from divingbell_inside import frames

if TYPE_CHECKING:
    from divingbell.gateway.upstream.base import UpstreamConnection

log = logs.logger("divingbell")


class GatewayHost:
    """The servers of all replicas, in this process and on its event loop."""

    def __init__(
        self,
        loaded: LoadedSettings,
        name: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        secret: str | None = None,
        left_alone: float = 60.0,
    ) -> None:
        """Nothing is started yet. `secret` is made where none is given; `left_alone` are the
        seconds without any replica after which it may end.

        Raises:
            ConfigError: replicas elsewhere could reach it in the clear only, or the definitions
                of tools that were kept can't be used.
        """
        greeting.check_walls(host, tls)
        self.name = name
        self.alone = asyncio.Event()
        """Set once there was no replica for so long that it may end."""
        self._loaded = loaded
        self._host, self._port, self._tls = host, port, tls
        self._secret = secret or secrets.token_hex(32)
        self._left_alone = left_alone
        self._leaving: asyncio.TimerHandle | None = None
        self._undo = AsyncExitStack()
        self.accounts = Accounts(loaded.settings, lambda: self._listener.lines)
        self._pins = PinKeeper(kept_pins() if loaded.settings.policy.pin else Pins(None))
        self._totals = TotalsKeeper()
        handlers: dict[str, Handler] = {
            "settings": self._settings,
            "attach": self._attach,
            "ready": self._ready,
            **dict.fromkeys(_EXCHANGES, self._ask),
            **self.accounts.handlers,
            "count": self._totals.count,
            "review_pin": self._pins.review,
            "approve_pin": self._pins.approve,
        }
        self._answers = Answers(handlers)
        self._listener = Listener(name, self._secret, self._begin, self._heard, self._lost)

    async def start(self) -> NodeAddress:
        """Start it; return where replicas find it.

        Raises:
            ProfileError: its folders can't be made.
            OSError: the port can't be listened at.
        """
        loop_thread.go_first()
        settings = self._loaded.settings
        async with AsyncExitStack() as undo:
            home = await asyncio.to_thread(Home)
            undo.callback(home.close)
            servers = {
                each.name: each
                for each in settings.servers
                if isinstance(each, Server) and each.enabled and each.datasets is None
            }
            self._connections = Connections(servers, upstreams_of(settings, home))
            undo.push_async_callback(self._connections.stop)
            undo.callback(self.accounts.stop)
            undo.push_async_callback(self._pins.stop)
            undo.push_async_callback(self._totals.stop)
            undo.push_async_callback(self._answers.stop)
            port = await self._listener.listen(self._host, self._port, self._tls, undo)
            self._undo = undo.pop_all()
        self._look_whether_alone()
        return NodeAddress(self.name, self._host, port, self._secret)

    async def stop(self) -> None:
        """End every connection, and all that was started. May be called again."""
        if self._leaving is not None:
            self._leaving.cancel()
        await self._undo.aclose()

    # Replicas come and go

    def _begin(self, line: Line, stream: Stream, message: Message) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if not self.accounts.answered(line, stream, message):
            self._answers.begin(line, stream, message)

    def _lost(self, line: Line, reason: str) -> None:
        self.accounts.lost(line)
        self._look_whether_alone()

    def _look_whether_alone(self) -> None:
        if not self._listener.lines and self._leaving is None:
            loop = asyncio.get_running_loop()
            self._leaving = loop.call_later(self._left_alone, self._leave)

    def _leave(self) -> None:
        self._leaving = None
        if not self._listener.lines:
            self.alone.set()

    # What replicas ask

    async def _settings(self, line: Line, stream: Stream, message: Message) -> None:
        await stream.end({}, self._loaded.told())

    def _heard(self, line: Line, message: Message) -> None:
        """Take a word that wants no answer (divingbell.scale.line.OnWord)."""
        if self.accounts.heard(line, message):
            return
        if message.header.get("op") == "retry":
            try:
                self._connections.find(*_server_in(message.header)).retry()
            except ToolFailed:
                log.debug("a server was to be tried again that nobody holds")

    async def _attach(self, line: Line, stream: Stream, message: Message) -> None:
        """Tell a replica how a server is doing, for as long as it wants to know."""
        name, session = _server_in(message.header)
        running, is_over = asyncio.current_task(), False
        assert running is not None

        def heard(message: Message) -> bool:
            nonlocal is_over
            is_over = message.header.get("do") == "cancel"
            return (is_over or "error" in message.header) and running.cancel()

        stream.listen(heard)
        watcher = Watcher(stream)
        try:
            lazy = message.header.get("lazy") is True
            held = await self._connections.hold(name, session, watcher, lazy=lazy)
            await watcher.tell(held)
        except ToolFailed as error:
            await end_failed(stream, error)
        except asyncio.CancelledError:
            if not is_over:
                raise
            stream.finish({})
        finally:
            self._connections.let_go(name, session, watcher, at_once=is_over)

    async def _ready(self, line: Line, stream: Stream, message: Message) -> None:
        seconds = _seconds_in(message.header)
        try:
            await self._connections.find(*_server_in(message.header)).ready(seconds)
        except ToolFailed as error:
            await end_failed(stream, error)
        else:
            await stream.end({})

    async def _ask(self, line: Line, stream: Stream, message: Message) -> None:
        """Put a request to a server. What that asks in between is put to the replica.

        A request that has yet to be recorded is made ready, and held until the replica lets it go.
        """
        header = message.header
        name, session = _server_in(header)
        running, is_over = asyncio.current_task(), False
        assert running is not None
        released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        caller = None
        if header.get("caller") is True:
            caller = LineCaller(stream, field_of(header, "caller_session", str))

        async def kept() -> None:
            await asyncio.shield(released)

        def heard(message: Message) -> bool:
            nonlocal is_over
            match message.header.get("do"):
                case "go":
                    if not released.done():
                        released.set_result(None)
                case "answer" if caller is not None:
                    caller.answered(message)
                case "cancel":
                    is_over = True
                    running.cancel()
                case _ if "error" in message.header:  # the line is gone, and the replica with it
                    running.cancel()
            return True

        stream.listen(heard)
        departure = Departure(kept) if header.get("held") is True else None
        try:
            upstream = self._connections.find(name, session)
            ask = _EXCHANGES[header["op"]]
            given = _Given(header, message.body, caller, departure, _seconds_in(header))
            result = await wire.written(await ask(upstream, given))
            if len(result) > frames.MAX_BODY:
                words = f"{name}: the result has {len(result):,} bytes, which is too much"
                raise ToolFailed(words, "tool_result")
            await stream.end({}, result)
        except (ToolFailed, NotRecorded) as error:
            await end_failed(stream, error)
        except asyncio.CancelledError:
            if not is_over:
                raise
            stream.finish({"failed": "tool_cancelled"}, b"it was cancelled")
        finally:
            released.cancel()


class _Given:
    """A request of a replica, on its way to a server."""

    def __init__(
        self,
        header: frames.Header,
        body: bytes,
        caller: LineCaller | None,
        departure: Departure | None,
        timeout: float | None,
    ) -> None:
        self.what = field_of(header, "what", str, "")
        self.body = body
        self.caller, self.departure, self.timeout = caller, departure, timeout


async def _call(upstream: "UpstreamConnection", given: _Given) -> Any:
    arguments = await wire.read(wire.GIVEN, given.body)
    return await upstream.call_tool(
        given.what,
        arguments,
        timeout=given.timeout,
        caller=given.caller,
        departure=given.departure,
    )


async def _read(upstream: "UpstreamConnection", given: _Given) -> Any:
    return await upstream.read_resource(given.what, given.caller, timeout=given.timeout)


async def _prompt(upstream: "UpstreamConnection", given: _Given) -> Any:
    arguments = await wire.read(wire.TEXTS, given.body)
    return await upstream.get_prompt(given.what, arguments, given.caller, timeout=given.timeout)


async def _complete(upstream: "UpstreamConnection", given: _Given) -> Any:
    asked = await wire.read(wire.COMPLETION, given.body)
    return await upstream.complete(asked.ref, asked.argument, asked.context)


async def _resources(upstream: "UpstreamConnection", given: _Given) -> Any:
    return await upstream.list_resources()


async def _templates(upstream: "UpstreamConnection", given: _Given) -> Any:
    return await upstream.list_resource_templates()


async def _prompts(upstream: "UpstreamConnection", given: _Given) -> Any:
    return await upstream.list_prompts()


_EXCHANGES: dict[str, Callable[["UpstreamConnection", _Given], Awaitable[Any]]] = {
    "call": _call,
    "read": _read,
    "prompt": _prompt,
    "complete": _complete,
    "list_resources": _resources,
    "list_templates": _templates,
    "list_prompts": _prompts,
}


def _server_in(header: frames.Header) -> tuple[str, str | None]:
    return field_of(header, "server", str, ""), field_of(header, "session", str)


def _seconds_in(header: frames.Header) -> float | None:
    seconds = header.get("timeout")
    if seconds is not None and (type(seconds) not in (int, float) or seconds < 0):
        raise frames.FrameError("a time that makes no sense")
    return seconds
