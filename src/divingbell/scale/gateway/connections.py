"""Connections to servers, held once for all replicas, which are told what becomes of them."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.fleet import MakeUpstream, load_sdk
from divingbell.scale.gateway import wire
from divingbell.scale.line import Stream
from divingbell.settings.servers import Server

if TYPE_CHECKING:
    from divingbell.gateway.upstream.base import UpstreamConnection

GRACE = 10.0
"""Seconds that a connection of one session outlives a line that broke: it may be laid again."""


class Watcher:
    """Tells a replica how a server is doing: the latest of it, however fast it changes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._news = asyncio.Event()
        self._has_tools = True
        self._changes: set[Any] = set()

    def heard(self, *, tools: bool = False, change: str | None = None) -> None:
        """Take note that something is to be told."""
        self._has_tools |= tools
        if change is not None:
            self._changes.add(change)
        self._news.set()

    async def tell(self, held: "Held") -> None:
        """Tell, now and whenever there is news; for as long as the stream lasts."""
        upstream = held.upstream
        while True:
            self._news.clear()
            has_tools, self._has_tools = self._has_tools, False
            changes, self._changes = self._changes, set()
            told = wire.Told(
                state=upstream.state,  # type: ignore[arg-type]
                reason=upstream.reason,
                instructions=upstream.instructions,
                protocol_version=upstream.protocol_version,
                pid=upstream.pid,
                log_path=str(upstream.log_path),
                tools=upstream.tools if has_tools and held.is_listed else None,
                changes=sorted(changes),
            )
            await self._stream.send({}, await wire.written(told))
            await self._news.wait()


class Held:
    """One connection, and the replicas that are told of it."""

    def __init__(self, server: Server, make: MakeUpstream, session: str | None) -> None:
        self.watchers: set[Watcher] = set()
        self.is_listed = False
        """Whether its tools are known, be it that it has none."""
        self.upstream: UpstreamConnection = make(
            server,
            self._listed,
            lambda kind: self._tell(change=kind),
            lambda state: self._tell(),
            session,
        )

    def _listed(self, tools: Any) -> None:
        self.is_listed = True
        self._tell(tools=True)

    def _tell(self, *, tools: bool = False, change: str | None = None) -> None:
        for watcher in self.watchers:
            watcher.heard(tools=tools, change=change)


Key = tuple[str, str | None]


class Connections:
    """The connections of all replicas: one to each server, and one for each session that has its
    own. The first are kept until the end, the others for as long as a replica has the session."""

    def __init__(self, servers: Mapping[str, Server], make: MakeUpstream) -> None:
        self._servers = servers
        self._make = make
        self._held: dict[Key, Held] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def find(self, name: str, session: str | None) -> "UpstreamConnection":
        """Return a connection that a replica holds.

        Raises:
            ToolFailed: there is none.
        """
        held = self._held.get((name, session))
        if held is None:
            raise ToolFailed(f"the server {name[:80]} is not connected", "tool_unavailable")
        return held.upstream

    async def hold(self, name: str, session: str | None, watcher: Watcher, *, lazy: bool) -> Held:
        """Return a connection, made if need be, of which a replica is told from now on.

        Raises:
            ToolFailed: there is no such server, or none of a session's own.
        """
        server = self._servers.get(name)
        if server is None or (session is not None and not server.per_session):
            raise ToolFailed(f"there is no server {name[:80]!r} here", "tool_unknown")
        await load_sdk()
        key = name, session
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = Held(server, self._make, session)
            held.upstream.start(lazy=lazy and session is None)
        held.watchers.add(watcher)
        return held

    def let_go(self, name: str, session: str | None, watcher: Watcher, *, at_once: bool) -> None:
        """Take a replica off; the last one ends what a session had for itself."""
        key = name, session
        held = self._held.get(key)
        if held is None:
            return
        held.watchers.discard(watcher)
        if session is not None and not held.watchers:
            task = asyncio.create_task(self._end(key, held, 0.0 if at_once else GRACE))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _end(self, key: Key, held: Held, after: float) -> None:
        await asyncio.sleep(after)
        if not held.watchers and self._held.get(key) is held:
            del self._held[key]
            await held.upstream.stop()

    async def stop(self) -> None:
        """End every connection."""
        for task in self._stopping:
            task.cancel()
        held, self._held = list(self._held.values()), {}
        await asyncio.gather(
            *(each.upstream.stop() for each in held), *self._stopping, return_exceptions=True
        )
