"""Subscriptions to changes: of the lists of tools, prompts and resources, and of resources.

The older protocol tells every connection, and those that have subscribed to a resource. The newer
one tells those who listen. Either way a user hears of nobody else's files.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from divingbell import logs
from divingbell.principal import Principal
from divingbell.surfaces.mcp import limits
from divingbell.surfaces.mcp.callers import HTTP, Context, is_modern, principal_of
from divingbell.surfaces.mcp.exits import Exits
from divingbell.surfaces.mcp.replicas import Alone, Replicas

log = logs.logger("divingbell")

MAX_CONNECTIONS = 1000
"""Connections of the older protocol that are told; the one that spoke longest ago is dropped."""
PAUSE = 0.1
"""Seconds between two tellings of the same kind."""
MAX_STREAMS = 64
"""Streams of changes that one user may keep open."""


class _Bus(InMemorySubscriptionBus):
    """The SDK's bus of events, which also counts those who listen."""

    def __init__(self, counted: Callable[[int], None]) -> None:
        super().__init__()
        self.listeners = 0
        self._counted = counted

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        undo = super().subscribe(listener)
        self.listeners += 1
        self._counted(self.listeners)
        with contextlib.ExitStack() as leaving:
            leaving.callback(undo)
            leaving.callback(self._left)
            return leaving.pop_all().close  # which does nothing when it is called again

    def _left(self) -> None:
        self.listeners -= 1
        self._counted(self.listeners)


class _Streams:
    """The streams of one user."""

    def __init__(self, counted: Callable[[int], None]) -> None:
        self.bus = _Bus(counted)
        self.handler = ListenHandler(self.bus, max_subscriptions=MAX_STREAMS)


class Subscriptions:
    """The streams and connections that want to hear of changes; it tells them."""

    def __init__(self, exits: Exits, replicas: Replicas | None = None) -> None:
        self._exits = exits
        self._replicas = replicas or Alone()
        self._listening_at: dict[str, set[str]] = {}
        """By user, other replicas at which one of their streams is open."""
        self._streams: dict[str, _Streams] = {}
        """By user."""
        self._connections: dict[Principal, ServerSession] = {}
        self._subscribed: dict[Principal, set[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: dict[type[ServerEvent], ServerEvent | None] = {}
        """The kinds of changes that are being told, and what has come since."""

    # Subscribing
    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of changes (2026-07-28)."""
        user = principal_of(ctx).user
        streams = self._streams.get(user)
        if streams is None:
            streams = self._streams[user] = _Streams(lambda count: self._counted(user, count))
        return await streams.handler(ctx, params)

    def _counted(self, user: str, listeners: int) -> None:
        """Tell other replicas whether a user listens here, when that changes."""
        if listeners in (0, 1):
            self._tell_listening(user, listens=listeners == 1)

    def _tell_listening(self, user: str, *, listens: bool) -> None:
        told = {"kind": "listening", "user": user, "at": self._replicas.name, "listens": listens}
        self._replicas.tell(told)

    def heard(self, told: Mapping[str, Any]) -> None:
        """Take what another replica has told all."""
        match told["kind"]:
            case "listening":
                places = self._listening_at.setdefault(told["user"], set())
                (places.add if told["listens"] else places.discard)(told["at"])
                if not places:
                    del self._listening_at[told["user"]]
            case "files":
                principal = Principal(told["user"], "", HTTP)
                self._spawn(self._tell_of_files(principal, told["uris"], told["list_changed"]))
            case "here":  # one that has just begun
                for user, streams in self._streams.items():
                    if streams.bus.listeners:
                        self._tell_listening(user, listens=True)

    async def remember(self, ctx: Context, call_next: Any) -> Any:
        """Keep the way to a connection of the older protocol (a middleware)."""
        if not is_modern(ctx) and ctx.method not in ("initialize", "ping"):
            principal = principal_of(ctx)
            self._connections.pop(principal, None)
            self._connections[principal] = ctx.session
            while len(self._connections) > MAX_CONNECTIONS:
                self._drop(next(iter(self._connections)))
        return await call_next(ctx)

    def subscribe(self, principal: Principal, uri: str) -> None:
        """Tell a connection when a resource is another one, by the address that it knows it by.

        Raises:
            MCPError: it has subscribed to too many.
        """
        wanted = self._subscribed.setdefault(principal, set())
        limits.check_subscriptions(wanted | {uri})
        wanted.add(uri)

    def unsubscribe(self, principal: Principal, uri: str) -> None:
        """Tell it no more."""
        self._subscribed.get(principal, set()).discard(uri)

    def wants(self, principal: Principal) -> bool:
        """Whether it is worth while to look for changes of a principal's files."""
        streams = self._streams.get(principal.user)
        return (
            bool(self._subscribed.get(principal))
            or (streams is not None and streams.bus.listeners > 0)
            or principal.user in self._listening_at
        )

    # Telling

    def lists_changed(self, event: ServerEvent) -> None:
        """Tell everybody that a list is another one.

        Of each kind one telling is under way at most, and one follows: an upstream server may
        announce changes without end, and a client may be slow to hear them.
        """
        kind = type(event)
        if kind in self._telling:
            self._telling[kind] = event
        else:
            self._telling[kind] = None
            self._spawn(self._tell_of_lists(event))

    async def _tell_of_lists(self, event: ServerEvent | None) -> None:
        while event is not None:
            kind = type(event)
            try:
                await self._send(event, list(self._streams), list(self._connections))
                await asyncio.sleep(PAUSE)
            finally:
                event = self._telling.pop(kind, None)
            if event is not None:
                self._telling[kind] = None

    def files_changed(self, principal: Principal, uris: Iterable[str], list_changed: bool) -> None:
        """Tell a principal that files of its own are others, and whether their list is."""
        found = list(uris)
        self._spawn(self._tell_of_files(principal, found, list_changed))
        if principal.user in self._listening_at and (found or list_changed):
            told = {"kind": "files", "user": principal.user, "uris": found}
            self._replicas.tell({**told, "list_changed": list_changed})

    async def _tell_of_files(
        self, principal: Principal, uris: list[str], list_changed: bool
    ) -> None:
        for uri in uris:
            shown = await self._exits.address(uri, principal)
            await self._send(ResourceUpdated(uri=shown), [principal.user], [principal])
        if list_changed:
            await self._send(ResourcesListChanged(), [principal.user], [principal])

    async def _send(
        self, event: ServerEvent, users: list[str], principals: list[Principal]
    ) -> None:
        for user in users:
            if user in self._streams:
                await self._streams[user].bus.publish(event)
        for principal in principals:
            session = self._connections.get(principal)
            if session is None:
                continue
            try:
                if isinstance(event, ToolsListChanged):
                    await session.send_tool_list_changed()
                elif isinstance(event, PromptsListChanged):
                    await session.send_prompt_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await session.send_resource_list_changed()
                elif event.uri in self._subscribed.get(principal, ()):
                    await session.send_resource_updated(event.uri)
            except Exception:
                self._drop(principal)  # gone without a word

    def _spawn(self, telling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(telling)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Leaving

    def leave(self, connection: str) -> None:
        """Forget a connection that has ended."""
        for principal in {*self._connections, *self._subscribed}:
            if principal.conversation == connection:
                self._drop(principal)

    def close(self) -> None:
        """Tell nobody any more."""
        for streams in self._streams.values():
            streams.handler.close()
        for task in self._tasks:
            task.cancel()

    def _drop(self, principal: Principal) -> None:
        self._connections.pop(principal, None)
        self._subscribed.pop(principal, None)
