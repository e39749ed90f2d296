"""A connection to one server, owned by one task: made, kept, and remade when it breaks."""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
import mcp_types
from mcp import Client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from divingbell import text
from divingbell.errors import ToolFailed
from divingbell.gateway.sign_in.oauth import Credentials
from divingbell.gateway.upstream import paging
from divingbell.gateway.upstream.failures import Failure, told, why
from divingbell.gateway.upstream.flights import Flights
from divingbell.gateway.upstream.orphan_groups import Groups
from divingbell.gateway.upstream.paging import Item
from divingbell.gateway.upstream.questions import Questions
from divingbell.gateway.upstream.redaction import Redactor, guard_logs
from divingbell.gateway.upstream.remote import RemoteConnection
from divingbell.gateway.upstream.server_log import ServerLog
from divingbell.gateway.upstream.short_pages import shortened
from divingbell.gateway.upstream.stdio import StdioConnection
from divingbell.gateway.upstream.tool_list_cache import Listing, ToolListCache
from divingbell.settings.servers import Server, secrets_of

State = Literal["idle", "connecting", "ready", "failed", "stopped"]
Change = Literal["resources", "prompts"]
Connection = StdioConnection | RemoteConnection
_Mode = Literal["legacy", "auto"]

LIST_TIMEOUT = 30.0
FIRST_DELAY, LONGEST_DELAY = 0.5, 60.0
STEADY = 30.0
"""Seconds after which a connection counts as good: the next delay is a short one again."""
PATIENCE = 2.0
"""Seconds that a call waits for the next attempt; for a later one it fails at once."""
RELIST_PAUSE = 0.25
RELIST_SHARE = 10
GRACE = 0.5
"""Seconds between killing a server that hangs at its start and giving it up."""
STOP_TIMEOUT = 10.0
_INFO = mcp_types.Implementation(name="divingbell", version="0.1.0")


@dataclass(frozen=True, slots=True)
class _ToolList:
    """Tools as a server has listed them, and all of them as one text to compare."""

    tools: list[mcp_types.Tool]
    text: str


class Link:
    """The part of an Upstream that lives on its own."""

    def __init__(
        self,
        server: Server,
        *,
        on_tools: Callable[[list[mcp_types.Tool]], None],
        log_folder: Path,
        shelf: ToolListCache | None = None,
        credentials: Credentials | None = None,
        groups: Groups | None = None,
        environment: Mapping[str, str] = os.environ,
        on_changed: Callable[[Change], None] | None = None,
        on_state: Callable[[State], None] | None = None,
    ) -> None:
        guard_logs()
        self.server = server
        self.state: State = "idle"
        self.reason = ""
        """Why it is not ready, in words without secrets."""
        self.tools: list[mcp_types.Tool] = []
        self.instructions: str | None = None
        self.capabilities: mcp_types.ServerCapabilities | None = None
        self.protocol_version: str | None = None
        self.server_info: mcp_types.Implementation | None = None
        self.redactor = Redactor(secrets_of(server), server.name)
        self._on_tools, self._on_changed, self._on_state = on_tools, on_changed, on_state
        self._shelf, self._credentials, self._environment = shelf, credentials, environment
        self._groups = groups
        self._log = ServerLog(log_folder, server.name, self.redactor)
        self._flights = Flights()
        self._questions = Questions(self._flights, self.redactor, self._log)
        self._log_level: mcp_types.LoggingLevel = "info"
        self._legacy = False
        self._announced: str | None = None
        self._kept: tuple[str | None, bool] | None = None
        self._client: Client | None = None
        self._connection: Connection | None = None
        self._over = asyncio.Event()
        self._relist = asyncio.Event()
        self._wanted = asyncio.Event()
        self._again = asyncio.Event()
        self._outcome: asyncio.Future[None] | None = None
        self._next_attempt = 0.0
        self._misses = 0  # attempts that never got ready
        self._needs_person = False
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process of a stdio server that runs."""
        return None if self._connection is None else self._connection.pid

    @property
    def log_path(self) -> Path:
        """Where its stderr goes."""
        return self._log.path

    def start(self, *, lazy: bool = True) -> None:
        """Begin to connect, or, if the list of tools is known from last time, wait for a call."""
        if self._task is not None or self._stopping:
            return
        self._outcome = asyncio.get_running_loop().create_future()
        kept = self._shelf.load(self.server) if self._shelf is not None else None
        if kept is not None:
            self._legacy = kept.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
            self.instructions, self.protocol_version = kept.instructions, kept.protocol_version
            self._announce(self._as_list(kept.tools))
        if kept is None or not lazy:
            self._wanted.set()
            self._set("connecting")
        self._task = asyncio.create_task(self._run(), name=f"upstream {self.server.name}")

    def retry(self) -> None:
        """Try again now instead of later, after a sign-in for instance."""
        self._wanted.set()
        self._again.set()

    async def stop(self) -> None:
        """End the connection, and the server if it is a process of ours."""
        task, self._task = self._task, None
        self._stopping = True
        self.reason = "it was stopped"
        self._set("stopped")
        if task is not None:
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=STOP_TIMEOUT)
            if not done:
                task.cancel()
                await asyncio.wait([task], timeout=STOP_TIMEOUT)
        self._client = None
        self._settle()

    async def ready(self, timeout: float | None = None) -> None:
        """Return when the server can be called; wait at most `timeout` seconds.

        Raises:
            ToolFailed: it can't be reached; the message says why.
        """
        await self._connected(timeout)

    async def set_logging_level(self, level: mcp_types.LoggingLevel) -> None:
        """Ask for log messages from this level on; servers without logging are left alone."""
        self._log_level = level
        if self._client is not None:
            await self._tell_level(self._client)

    async def _connected(self, timeout: float | None = None) -> Client:
        if self._client is not None:
            return self._client
        self.start()
        now = asyncio.get_running_loop().time
        end = now() + (self.server.start_timeout if timeout is None else timeout)
        self._wanted.set()
        failed = self.state == "failed"
        if failed and self._credentials is not None and self._credentials.changed(self.server):
            self.retry()
        misses = self._misses
        while self._client is None:
            soon = self._again.is_set() or self._next_attempt - now() <= PATIENCE
            hopeless = self._misses > misses or (self.state == "failed" and not soon)
            if self._task is None or end <= now() or hopeless:
                raise self._unavailable()
            assert self._outcome is not None
            await asyncio.wait([self._outcome], timeout=end - now())
        return self._client

    def _unavailable(self) -> ToolFailed:
        reason = self.reason or "it is still starting"
        words = f"the server {self.server.name} is not available: {text.without_folders(reason)}"
        left = self._next_attempt - asyncio.get_running_loop().time()
        if self.state == "failed" and left > 0 and not self._needs_person:
            words += f"; the next attempt is in {left:.0f} s"
        return ToolFailed(words, "tool_unavailable")

    # What follows runs in the one task, or is heard from it.

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        failures = 0
        while True:
            await self._wanted.wait()
            self._again.clear()
            began = now()
            try:
                failure = await self._attempt()
            finally:
                self._client = None
            if self._stopping:
                return  # a cancellation that comes while scopes unwind may get lost in them
            failures = 1 if now() - began > STEADY else failures + 1
            delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 10))
            # With jitter: ten servers behind one address must not all come back at once.
            delay = LONGEST_DELAY if failure.needs_person else delay * random.uniform(0.75, 1.0)
            self.reason = told(failure.words, self.redactor)
            self._needs_person = failure.needs_person
            self._misses += not failure.was_ready
            self._log.note(f"not connected: {self.reason}")
            self._next_attempt = now() + delay
            self._set("failed")
            self._settle()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), delay)

    async def _attempt(self) -> Failure:
        """Connect and stay connected; return why it is over."""
        self._set("connecting")
        first = await self._connect("legacy" if self._legacy else "auto")
        if first.was_ready or first.final or self._stopping:
            return first
        # Some servers die of a request that they don't know, and some have changed their era.
        other: _Mode = "auto" if self._legacy else "legacy"
        second = await self._connect(other)
        if second.was_ready:
            self._legacy = other == "legacy"
            return second
        return first

    async def _connect(self, mode: _Mode) -> Failure:
        connection = self._connection = self._new_connection()
        over = self._over = asyncio.Event()
        limit = self.server.start_timeout
        words = f"it did not answer within {limit:g} seconds of its start"
        late = asyncio.get_running_loop().call_later(limit, connection.give_up, words)
        was_ready = False
        try:
            async with AsyncExitStack() as stack:
                client = self._new_client(connection, over, mode)
                async with asyncio.timeout(limit + GRACE):
                    await stack.enter_async_context(client)
                    listed = await self._tools_of(client)
                    await self._tell_level(client)
                late.cancel()
                await self._up(client, listed)
                was_ready = True
                try:
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._follow_lists, client)
                        group.start_soon(self._listen, client)
                        await over.wait()
                        reason = await connection.reason()
                        group.cancel_scope.cancel()
                finally:
                    over.set()  # before the calls on their way hear that it is closed
                return Failure(reason or "the connection broke off", was_ready=True)
        except Exception as error:
            return await why(error, connection, self.server, was_ready, self.redactor)
        finally:
            late.cancel()
            self._client = self._connection = None

    def _new_connection(self) -> Connection:
        if self.server.transport == "stdio":
            return StdioConnection(self.server, self._environment, self._log, self._groups)
        auth = None
        if self._credentials is not None and self.server.oauth is not None:
            auth = self._credentials.auth(self.server, self.redactor)
        return RemoteConnection(self.server, auth)

    def _new_client(self, connection: Connection, over: asyncio.Event, mode: _Mode) -> Client:
        return Client(
            shortened(connection.open(over)),
            mode=mode,
            cache=None,
            client_info=_INFO,
            log_level=self._log_level,
            message_handler=self._on_message,
            logging_callback=self._questions.log,
            elicitation_callback=self._questions.elicit,
            sampling_callback=self._questions.sample,
        )

    async def _up(self, client: Client, listed: _ToolList) -> None:
        self._client = client
        self.protocol_version = client.protocol_version
        self.capabilities = client.server_capabilities
        self.server_info = client.server_info
        self.instructions = self.redactor.clean(client.instructions or "") or None
        self.reason = ""
        await self._keep(listed)
        self._announce(listed)
        self._set("ready")
        self._settle()

    async def _tools_of(self, client: Client) -> _ToolList:
        # Beside the event loop, which thousands of long descriptions would hold up.
        return await asyncio.to_thread(self._as_list, await paging.tools(client))

    def _as_list(self, items: list[mcp_types.Tool]) -> _ToolList:
        tools = self._cleaned(items)
        return _ToolList(tools, "\n".join(tool.model_dump_json(by_alias=True) for tool in tools))

    def _cleaned(self, items: list[Item]) -> list[Item]:
        return [self._questions.cleaned(item) for item in items]

    async def _keep(self, listed: _ToolList) -> None:
        """Put a list on the shelf that is another one than the one there."""
        kept = (self.instructions, self._legacy)
        if self._shelf is None or (listed.text == self._announced and self._kept == kept):
            return
        self._kept = kept
        listing = Listing(listed.tools, self.instructions, self.protocol_version)
        await asyncio.to_thread(self._shelf.store, self.server, listing)

    def _announce(self, listed: _ToolList) -> None:
        if listed.text != self._announced:
            self._announced = listed.text
            self.tools = listed.tools
            self._on_tools(listed.tools)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._relist.set()
        elif self._on_changed is not None:
            if isinstance(message, mcp_types.ResourceListChangedNotification):
                self._on_changed("resources")
            elif isinstance(message, mcp_types.PromptListChangedNotification):
                self._on_changed("prompts")

    async def _list_again(self, client: Client) -> None:
        async with asyncio.timeout(LIST_TIMEOUT):
            listed = await self._tools_of(client)
            await self._keep(listed)
            self._announce(listed)

    async def _follow_lists(self, client: Client) -> None:
        while True:
            await self._relist.wait()
            self._relist.clear()
            began = asyncio.get_running_loop().time()
            try:
                await self._list_again(client)
            except Exception as error:
                self._log.note(f"its new list of tools can't be read: {type(error).__name__}")
            # A server that announces without end costs little, however long its list is.
            took = asyncio.get_running_loop().time() - began
            await asyncio.sleep(min(max(RELIST_PAUSE, RELIST_SHARE * took), LONGEST_DELAY))

    async def _listen(self, client: Client) -> None:
        """Hear of changes in the newer protocol, where they have to be asked for."""
        if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            return
        pause = FIRST_DELAY
        while wanted := paging.announced(client.server_capabilities):
            try:
                async with client.listen(
                    tools_list_changed="tools" in wanted,
                    prompts_list_changed="prompts" in wanted,
                    resources_list_changed="resources" in wanted,
                ) as events:
                    pause = FIRST_DELAY
                    self._relist.set()  # what changed before it listened was not heard
                    async for event in events:
                        await self._on_message(paging.notification(event))
            except Exception as error:
                if paging.refused(error):
                    return
            await asyncio.sleep(pause)
            pause = min(LONGEST_DELAY, pause * 2)

    async def _tell_level(self, client: Client) -> None:
        # In the newer protocol each request says it.
        if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return
        if client.server_capabilities.logging is None:
            return
        params = mcp_types.SetLevelRequestParams(level=self._log_level)
        request = mcp_types.SetLevelRequest(params=params)
        # A server that can't is one that does not log: no reason to fail.
        with contextlib.suppress(Exception):
            await client.session.send_request(request, mcp_types.EmptyResult, LIST_TIMEOUT)

    def _set(self, state: State) -> None:
        # Once stopped, it stays so: what the task still says comes too late.
        if state != self.state and (state == "stopped" or not self._stopping):
            self.state = state
            if self._on_state is not None:
                self._on_state(state)

    def _settle(self) -> None:
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)
        self._outcome = asyncio.get_running_loop().create_future()
