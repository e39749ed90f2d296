"""The fleet of upstream servers: how each of them is doing, and the connection to it."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from divingbell import logs
from divingbell.errors import ConfigError, ToolFailed
from divingbell.gateway.catalog.catalog import Catalog
from divingbell.gateway.catalog.definitions import Definition
from divingbell.journal.events import ServerDown, ServerUp
from divingbell.journal.journal import Journal
from divingbell.settings.servers import Entry, Server, UnusableServer
from divingbell.text import one_line, without_folders
from divingbell.tool import Tool

if TYPE_CHECKING:
    from divingbell.gateway.upstream.base import UpstreamConnection

log = logs.logger("divingbell.gateway")

LISTING_PATIENCE = 5.0
"""Seconds that a search waits for servers that are just starting."""

SHARE = 10
"""The next list of a server waits this many times as long as the last one took to be taken in."""

MAX_REASON = 1000

Listener = Callable[[Any], None]
MakeUpstream = Callable[[Server, Listener, Listener, Listener, str | None], "UpstreamConnection"]
"""Made of the entry, of what hears a new list of tools, other changes, and its state, and of the
key of the session that has it for itself."""
OnChange = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server."""

    name: str
    state: str
    """idle, connecting, ready, failed, stopped or broken (its entry can't be used)."""
    tools: int = 0
    reason: str = ""


class Fleet:
    """All upstream servers. A dead one costs the others nothing."""

    def __init__(self, catalog: Catalog, make_upstream: MakeUpstream, journal: Journal) -> None:
        self._journal = journal
        self._catalog = catalog
        self._make_upstream = make_upstream
        self._entries: dict[str, Server] = {}
        self._broken: dict[str, str] = {}
        self._published: set[str] = set()
        """Servers without a connection: what they have is in this program."""
        self._upstreams: dict[str, UpstreamConnection] = {}
        self._later: dict[str, Server] = {}
        """The entries of servers that nobody has asked for yet."""
        self._first_lists: dict[str, asyncio.Event] = {}
        self._private: dict[tuple[str, str], UpstreamConnection] = {}
        self._on_change: list[OnChange] = []
        self._writing = asyncio.Lock()
        """Files are written one server after the other, in the order in which their lists came."""
        self._pending: dict[str, _PendingTools] = {}
        self._writes: set[asyncio.Task[None]] = set()

    def start(self, entries: Iterable[Entry], *, lazy: bool = True) -> None:
        """Begin to connect, all at once; nothing is waited for.

        `lazy`: a server whose tools are known from last time is started when one is called.
        """
        for entry in entries:
            self.add(entry, lazy=lazy)

    def add(self, entry: Entry, *, lazy: bool = True, later: bool = False) -> None:
        """Add a server, at any time; `later`: nothing is done until something asks for it.

        Raises:
            ConfigError: there is one of that name.
        """
        if entry.name in self._catalog.servers:
            whose = " for the functions of this program" * self.is_published(entry.name)
            raise ConfigError(
                f"there is a server {entry.name!r}{whose} already; give this one another name"
            )
        self._catalog.add_server(entry.name)
        if isinstance(entry, UnusableServer):
            reason = one_line(entry.reason, MAX_REASON)  # it quotes the file that it is from
            log.warning("the server %s can't be used: %s", entry.name, reason)
            self._broken[entry.name] = reason
        elif entry.enabled:
            self._entries[entry.name] = entry
            self._write_soon(self._catalog.expect(entry.name))
            self._first_lists[entry.name] = asyncio.Event()
            if later:
                self._later[entry.name] = entry
            else:
                self._connect(entry, lazy)
        else:
            self._broken[entry.name] = "it is turned off: its entry says that it is not `enabled`"
        self._changed("servers", entry.name)

    def publish(self, server: str, definitions: Sequence[Definition]) -> dict[str, Tool]:
        """Have these tools of a server that is part of this program, and no others of it.

        Returns:
            The tools by their names. Their files are written soon: see `written`.

        Raises:
            ConfigError: a server that was configured has this name.
        """
        is_new = server not in self._published
        if is_new:
            self._check_free(server)
            self._catalog.add_server(server)
            self._published.add(server)
        read = self._catalog.read(server, definitions, "")
        self._write_soon(self._catalog.replace(read))
        if is_new:
            self._changed("servers", server)
        self._changed("tools", server)
        return read.tools

    def withdraw(self, server: str) -> None:
        """Take a server away that was published."""
        self._published.remove(server)
        self._write_soon(self._catalog.remove(server))
        self._changed("servers", server)
        self._changed("tools", server)

    def _check_free(self, server: str) -> None:
        for known in self._catalog.servers:
            if server in (known, self._catalog.package(known)):
                raise ConfigError(
                    f"the name {server!r} is for the functions of this program: give the server "
                    f"{known!r} another name in the settings, or give no functions"
                )

    def is_published(self, server: str) -> bool:
        """Whether a server is part of this program."""
        return server in self._published

    def published(self) -> list[str]:
        """The packages of the servers that are part of this program."""
        return [self._catalog.package(name) for name in self._published]

    async def written(self) -> None:
        """Wait until the files are those of what has been published and listed."""
        if self._writes:
            await asyncio.wait(self._writes)

    def _connect(self, entry: Server, lazy: bool) -> None:
        upstream = self._upstreams[entry.name] = self._make_upstream(
            entry,
            lambda tools: self._on_tools(entry, tools),
            lambda kind: self._changed(kind, entry.name),
            lambda state: self._state_changed(entry.name, state),
            None,
        )
        upstream.start(lazy=lazy)

    async def begin(self, *names: str) -> None:
        """Begin to connect to those of these servers that nobody has asked for before."""
        if any(name in self._later for name in names):
            await load_sdk()
        for name in names:
            if (entry := self._later.pop(name, None)) is not None:
                self._connect(entry, lazy=True)

    async def remove(self, name: str) -> None:
        """Take a server away, at any time; calls to it that are under way fail.

        Raises:
            ConfigError: it is part of this program.
        """
        if self.is_published(name):
            raise ConfigError(f"{name!r} are the functions of this program: use remove_tool")
        unwrite = self._catalog.remove(name)
        self._broken.pop(name, None)
        self._entries.pop(name, None)
        self._later.pop(name, None)
        self._first_lists.pop(name, asyncio.Event()).set()
        if (pending := self._pending.pop(name, None)) is not None:
            pending.stop()
        gone = [self._upstreams.pop(name, None)]
        gone += [self._private.pop(key) for key in list(self._private) if key[1] == name]
        await asyncio.gather(*(upstream.stop() for upstream in gone if upstream is not None))
        await self._write(unwrite)
        self._changed("servers", name)
        self._changed("tools", name)

    async def forget(self, session: str) -> None:
        """End the connections that a session had for itself."""
        gone = [self._private.pop(key) for key in list(self._private) if key[0] == session]
        await asyncio.gather(*(upstream.stop() for upstream in gone))

    async def stop(self) -> None:
        """End every connection."""
        publishing = [
            pending.publishing for pending in self._pending.values() if pending.publishing
        ]
        for pending in self._pending.values():
            pending.stop()
        everyone = [*self._upstreams.values(), *self._private.values()]
        self._upstreams, self._private = {}, {}
        outcomes = await asyncio.gather(
            *(upstream.stop() for upstream in everyone),
            *publishing,
            *self._writes,
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                log.error("a server was not stopped well", exc_info=outcome)

    def __bool__(self) -> bool:
        """Whether there is any server."""
        return bool(self._entries or self._broken or self._published)

    def servers(self) -> list[ServerState]:
        """The states of all servers."""
        found = []
        for name in self._catalog.servers:
            if name in self._broken:
                found.append(ServerState(name, "broken", reason=self._broken[name]))
            elif name in self._upstreams:
                upstream = self._upstreams[name]
                count = len(self._catalog.tools(name))
                found.append(ServerState(name, upstream.state, count, upstream.reason or ""))
            elif name in self._later:
                found.append(ServerState(name, "idle"))
            elif self.is_published(name):
                found.append(ServerState(name, "ready", len(self._catalog.tools(name))))
        return found

    def packages(self) -> list[str]:
        """The packages of the servers that can be used, whether they answer or not."""
        return [*map(self._catalog.package, self._entries), *self.published()]

    def server(self, name: str) -> Server | None:
        """The entry of a server, if it can be used."""
        return self._entries.get(name)

    def upstream(self, name: str, session: str | None = None) -> "UpstreamConnection":
        """The connection to a server, for a session.

        Raises:
            ToolFailed: the server is not there, or its entry can't be used.
        """
        name = self._catalog.check_server(name)
        if name in self._broken:
            self.check(name)
        entry = self._entries[name]
        if not entry.per_session or session is None:
            return self._upstreams[name]
        key = (session, name)
        if key not in self._private:
            self._private[key] = self._make_upstream(entry, _ignore, _ignore, _ignore, session)
            self._private[key].start()
        return self._private[key]

    def check(self, name: str) -> None:
        """Raise ToolFailed, with the reason, if a server can't be used now."""
        if name in self._broken:
            words = f"the server {name} can't be used: {without_folders(self._broken[name])}"
            raise ToolFailed(words, "tool_unavailable")
        upstream = self._upstreams.get(name)
        if upstream is None:
            return
        never_listed = upstream.state == "connecting" and not self._catalog.has_list(name)
        if never_listed or upstream.state == "failed":
            reason = upstream.reason or "it is still starting"
            words = f"the server {name} is not available: {without_folders(reason)}"
            raise ToolFailed(words, "tool_unavailable")

    def is_awaited(self, server: str) -> bool:
        """Whether a server has not listed its tools yet, and may still do so."""
        return server in self._first_lists and not self._first_lists[server].is_set()

    def is_settled(self, server: str) -> bool:
        """Whether the tools of a server are known, and it is not about to list them again."""
        upstream = self._upstreams.get(server)
        is_starting = upstream is not None and upstream.state == "connecting"
        return self._catalog.has_list(server) and not is_starting

    async def wait_for_tools(self, server: str | None = None) -> None:
        """Wait until a server has listed its tools for the first time, or has failed to.

        Without a name, until all have, but not for long: a slow one holds nobody up.
        """
        names = [server] if server in self._first_lists else self._first_lists
        if server is not None and server not in self._first_lists:
            return
        waiting = [self._first_lists[name] for name in names]
        await self.begin(*names)
        waiting = [event for event in waiting if not event.is_set()]
        if waiting:
            patience = self._patience(server) if server else LISTING_PATIENCE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await asyncio.gather(*(event.wait() for event in waiting))

    def _patience(self, server: str) -> float:
        """Seconds until a server has surely failed: it gets two attempts, one in each era of the
        protocol."""
        return 3 * self._entries[server].start_timeout

    async def refresh(self, server: str) -> bool:
        """Ask a server that has not run yet whether its kept list still holds.

        Returns:
            Whether it was asked now; one that runs has been.
        """
        upstream = self._upstreams.get(server)
        if upstream is None or upstream.state != "idle":
            return False
        await self.wait_until_ready(server)
        return True

    async def wait_until_ready(self, server: str) -> None:
        """Wait until a server is ready and its tools are taken in, or until it has failed."""
        upstream = self._upstreams.get(server)
        if upstream is None:
            return
        with contextlib.suppress(ToolFailed):  # its state says why, once it has been given up
            await upstream.ready(self._patience(server))
        pending = self._pending.get(server)
        if pending is not None and pending.publishing is not None:
            await asyncio.wait([pending.publishing])

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        """Call back with a kind ("tools", "resources", "prompts") and a server when its list is
        another one, with "servers" when it is new or gone; returns the undo.
        """
        self._on_change.append(callback)
        return lambda: self._on_change.remove(callback)

    def _changed(self, kind: str, server: str) -> None:
        for callback in list(self._on_change):
            callback(kind, server)

    def _on_tools(self, entry: Server, tools: list[Any]) -> None:
        """Take in a new list soon: a server that tells them without end gets little of our time."""
        pending = self._pending.setdefault(entry.name, _PendingTools())
        pending.tools = tools
        if pending.publishing is None:
            pending.publishing = asyncio.create_task(self._publish(entry, pending))

    async def _publish(self, entry: Server, pending: "_PendingTools") -> None:
        loop = asyncio.get_running_loop()
        try:
            while pending.tools is not None:
                await asyncio.sleep(pending.not_before - loop.time())
                tools, pending.tools = pending.tools, None
                took = await self._take_in(entry, tools)
                pending.not_before = loop.time() + SHARE * took
        finally:
            pending.publishing = None

    async def _take_in(self, entry: Server, tools: list[Any]) -> float:
        """Put tools into the catalog; return the seconds that reading and indexing them took."""
        instructions = self._upstreams[entry.name].instructions or ""
        began = time.monotonic()
        # Beside the event loop: two thousand long definitions take a second to read.
        definitions = (
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
        )
        read = await asyncio.to_thread(self._catalog.read, entry.name, definitions, instructions)
        if self._entries.get(entry.name) is not entry:
            return time.monotonic() - began  # it was removed meanwhile
        write = self._catalog.replace(read)
        took = time.monotonic() - began
        await self._write(write)
        if entry.name in self._first_lists:
            self._first_lists[entry.name].set()
            self._changed("tools", entry.name)
        return took

    async def _write(self, write: Callable[[], None]) -> None:
        async with self._writing:
            try:
                await asyncio.to_thread(write)
            except OSError as error:  # a full disk: the tools can still be called by name
                log.error("files of servers could not be written: %s", error)

    def _write_soon(self, write: Callable[[], None]) -> None:
        task = asyncio.create_task(self._write(write))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    def _state_changed(self, name: str, state: str) -> None:
        if state == "ready":
            self._journal.note(ServerUp(name))
        elif state in ("failed", "stopped"):
            self._journal.note(ServerDown(name, state))
        if state in ("failed", "stopped") and name in self._first_lists:
            self._first_lists[name].set()


async def load_sdk() -> None:
    """Import what connects to servers. It takes most of a second: beside the event loop, then."""
    await asyncio.to_thread(import_module, "divingbell.gateway.upstream.upstream")


class _PendingTools:
    """The latest tools that a server has listed, until they are taken in."""

    def __init__(self) -> None:
        self.tools: list[Any] | None = None
        self.not_before = 0.0
        self.publishing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        if self.publishing is not None:
            self.publishing.cancel()


def _ignore(_: Any) -> None:
    """Hear nothing, for connections whose lists nobody needs."""
