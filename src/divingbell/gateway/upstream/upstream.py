"""One upstream server: calls, reads and lists, over a link that looks after itself."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp_types
from mcp import Client, MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel

from divingbell import text
from divingbell.errors import NotRecorded, ToolFailed
from divingbell.gateway.callers import Caller
from divingbell.gateway.sign_in.oauth import Credentials
from divingbell.gateway.upstream import exchange, list_changes, paging
from divingbell.gateway.upstream.exchange import Exchange, Result
from divingbell.gateway.upstream.failures import NO_WORDS, failed_call, is_closed
from divingbell.gateway.upstream.link import Link, Mode, State
from divingbell.gateway.upstream.paging import Item
from divingbell.gateway.upstream.pending_calls import PendingCalls
from divingbell.gateway.upstream.questions import Questions
from divingbell.gateway.upstream.redaction import Redactor, guard_logs
from divingbell.gateway.upstream.tool_list import TIMEOUT as LIST_TIMEOUT
from divingbell.gateway.upstream.tool_list import ToolList
from divingbell.gateway.upstream.tool_list_cache import ToolListCache
from divingbell.gateway.upstream.transport.connector import Connector
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.gateway.upstream.transport.orphan_groups import ProcessGroups
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.gateway.upstream.transport.short_pages import shortened
from divingbell.settings.servers import Server, secrets_of
from divingbell.shares import weight

Change = Literal["resources", "prompts"]

CALL_TIMEOUT = 60.0
MOST_VALUES = 100
"""Values of a completion: the limit of the protocol."""
MAX_NAME = 8_000
_INFO = mcp_types.Implementation(name="divingbell", version="0.1.0")


class Upstream:
    """A server that can be called; where it can't, the errors say in words what is wrong.

    `on_tools` hears each new list of tools, `on_changed` that resources or prompts are others
    now, `on_state` each change of `state`. All three are called on the event loop and must not
    block or raise. Nothing that is returned or raised holds a secret of the server.
    """

    def __init__(
        self,
        server: Server,
        *,
        on_tools: Callable[[list[mcp_types.Tool]], None],
        log_folder: Path,
        tool_list_cache: ToolListCache | None = None,
        credentials: Credentials | None = None,
        process_groups: ProcessGroups | None = None,
        environment: Mapping[str, str] = os.environ,
        on_changed: Callable[[Change], None] | None = None,
        on_state: Callable[[State], None] | None = None,
        spool: Path | None = None,
    ) -> None:
        guard_logs()
        self.server = server
        self.spool = spool
        """The folder in which it may leave tables as files; only our own dataset server may."""
        self._redactor = redactor = Redactor(secrets_of(server), server.name)
        self._log = log = ServerLog(log_folder, server.name, redactor)
        self._pending_calls = PendingCalls()
        self._questions = Questions(self._pending_calls, redactor, log)
        self._log_level: mcp_types.LoggingLevel = "info"
        self._on_changed = on_changed
        self._tool_list = ToolList(server, tool_list_cache, redactor, log, on_tools)
        self._link = Link(
            server,
            Connector(server, redactor, log, environment, credentials, process_groups),
            redactor,
            log,
            new_client=self._new_client,
            greet=self._greet,
            attend=self._attend,
            on_state=on_state,
        )

    @property
    def state(self) -> State:
        """The state of its connection."""
        return self._link.state

    @property
    def reason(self) -> str:
        """The reason why it is not ready, in words without secrets; empty if it is."""
        return self._link.reason

    @property
    def tools(self) -> list[mcp_types.Tool]:
        """The tools as the server last listed them, now or when it last ran."""
        return self._tool_list.tools

    @property
    def instructions(self) -> str | None:
        """The server's own words about itself."""
        return self._tool_list.instructions

    @property
    def protocol_version(self) -> str | None:
        """The version of the protocol that the server spoke when it was last heard."""
        return self._tool_list.protocol_version

    @property
    def pid(self) -> int | None:
        """The process of a stdio server that runs."""
        return self._link.pid

    @property
    def log_path(self) -> Path:
        """The file that its stderr goes to."""
        return self._log.path

    def start(self, *, lazy: bool = True) -> None:
        """Begin to connect, or, if the list of tools is known from last time, wait for a call."""
        if not self._link.is_begun:
            is_known = self._tool_list.recall()
            self._link.start(at_once=not (is_known and lazy), is_legacy=self._tool_list.is_legacy)

    def retry(self) -> None:
        """Try again now instead of later, after a sign-in for instance."""
        self._link.retry()

    async def stop(self) -> None:
        """End the connection, and the server if it is a process of ours."""
        await self._link.stop()

    async def ready(self, timeout: float | None = None) -> None:
        """Return when the server can be called; wait at most `timeout` seconds.

        Raises:
            ToolFailed: it can't be reached; the message says why.
        """
        await self._connected(timeout)

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

        The result is not checked against the tool's schema. With a `departure` it is made ready
        while that is waited for.

        Raises:
            ToolFailed: no result came, or none that makes sense.
            NotRecorded: it must not leave.
        """
        what = f"{self.server.name}.{name[:200]}"
        given = {"name": name, "arguments": _copied(arguments)}
        return await self._ask(exchange.CALL, what, given, caller, timeout, departure)

    async def read_resource(
        self, uri: str, caller: Caller | None = None, *, timeout: float | None = None
    ) -> mcp_types.ReadResourceResult:
        """Read a resource. Raises: as `call_tool`."""
        what = f"{self.server.name}: resource {uri[:200]}"
        return await self._ask(exchange.READ, what, {"uri": uri}, caller, timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        caller: Caller | None = None,
        *,
        timeout: float | None = None,
    ) -> mcp_types.GetPromptResult:
        """Get a prompt. Raises: as `call_tool`."""
        what = f"{self.server.name}: prompt {name[:200]}"
        given = {"name": name, "arguments": _copied(arguments)}
        return await self._ask(exchange.PROMPT, what, given, caller, timeout)

    async def complete(
        self,
        ref: mcp_types.ResourceTemplateReference | mcp_types.PromptReference,
        argument: mcp_types.CompletionArgument,
        context: Mapping[str, str] | None = None,
    ) -> mcp_types.CompleteResult:
        """Return the ways in which a value could go on. Raises: as `call_tool`."""
        known = None
        if context is not None:
            known = mcp_types.CompletionContext(arguments=dict(context))
        given = {"ref": ref, "argument": argument, "context": known}
        what = f"{self.server.name}: completion"
        result = await self._ask(exchange.COMPLETION, what, given, None, None)
        return _as_many_as_allowed(result)

    async def list_resources(self) -> list[mcp_types.Resource]:
        """Return all resources; none if the server has no such thing. Raises: as `call_tool`."""
        return await self._list(paging.resources)

    async def list_resource_templates(self) -> list[mcp_types.ResourceTemplate]:
        """Return all templates of resources. Raises: as `call_tool`."""
        return await self._list(paging.resource_templates)

    async def list_prompts(self) -> list[mcp_types.Prompt]:
        """Return all prompts. Raises: as `call_tool`."""
        return await self._list(paging.prompts)

    async def _connected(self, timeout: float | None = None) -> Client:
        self.start()
        return await self._link.connected(timeout)

    async def _list(self, read: Callable[[Client], Awaitable[list[Item]]]) -> list[Item]:
        client = await self._connected()
        limit = self.server.timeout or LIST_TIMEOUT
        try:
            async with asyncio.timeout(limit):
                found = await read(client)
        except Exception as error:
            what = f"{self.server.name}: its list"
            raise await self._failed(error, client, what, limit) from None
        return await weight.beside(self._presentable, found)

    def _presentable(self, items: list[Item]) -> list[Item]:
        """The items that can be named, without secrets."""
        return [self._redactor.clean_model(item) for item in items if _can_be_named(item)]

    async def _ask(
        self,
        kind: Exchange[Result],
        what: str,
        given: Mapping[str, Any],
        caller: Caller | None,
        timeout: float | None,
        departure: Departure | None = None,
    ) -> Result:
        leaving = contextlib.nullcontext if departure is None else departure.awaited
        limit = timeout or self.server.timeout or CALL_TIMEOUT
        again = True
        while True:
            client = await self._connected()
            with self._pending_calls.begin(caller) as call:
                try:
                    async with asyncio.timeout(limit) as call.clock:
                        # Not sooner: a task that is begun in the block would be held as well.
                        with leaving():
                            result = await kind.run(
                                client, given, call, self._questions, self._log_level
                            )
                    return await weight.beside(self._redactor.clean_model, result)
                except NotRecorded:
                    raise
                except Exception as error:
                    if not again or not await self._is_unheard(error, client):
                        raise await self._failed(error, client, what, limit) from None
                    again = False

    async def _is_unheard(self, error: Exception, client: Client) -> bool:
        """Whether a request was turned down before anything was done, and can be sent again."""
        if not isinstance(error, MCPError):
            return False
        if error.code == mcp_types.HEADER_MISMATCH:
            # The list that the headers were made from is old.
            with contextlib.suppress(Exception):
                await self._tool_list.renew(client)
                return True
        # A server at an address that was started anew knows nothing of our session.
        is_unknown = error.message == NO_WORDS or "session" in error.message.lower()
        if self._link.status in (400, 404) and is_unknown:
            self._link.abandon(client)
            return True
        return False

    async def _failed(
        self, error: Exception, client: Client, what: str, limit: float
    ) -> ToolFailed:
        is_broken = self._link.is_over(client) or is_closed(error)
        status = self._link.status
        if is_broken:
            await self._link.explained()
            if self._link.needs_person:
                return self._link.unavailable()  # it was refused, not lost
        lost = text.without_folders(self.reason) if is_broken else None
        return failed_call(error, what, limit, self._redactor, lost=lost, status=status)

    # What the link asks for: see `Link`.

    def _new_client(self, streams: Any, mode: Mode) -> Client:
        return Client(
            shortened(streams),
            mode=mode,
            cache=None,
            client_info=_INFO,
            log_level=self._log_level,
            message_handler=self._on_message,
            logging_callback=self._questions.log,
            elicitation_callback=self._questions.elicit,
            sampling_callback=self._questions.sample,
        )

    async def _greet(self, client: Client) -> Callable[[], Awaitable[None]]:
        listed = await self._tool_list.read(client)
        await self._send_log_level(client)

        async def take_in() -> None:
            self._tool_list.protocol_version = client.protocol_version
            self._tool_list.instructions = self._redactor.clean(client.instructions or "") or None
            await self._tool_list.take(listed)

        return take_in

    async def _attend(self, client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._tool_list.follow, client)
            group.start_soon(list_changes.listen, client, self._on_message)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._tool_list.expire()
        elif self._on_changed is not None:
            if isinstance(message, mcp_types.ResourceListChangedNotification):
                self._on_changed("resources")
            elif isinstance(message, mcp_types.PromptListChangedNotification):
                self._on_changed("prompts")

    async def _send_log_level(self, client: Client) -> None:
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


def _copied(arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if arguments is None else dict(arguments)


def _can_be_named(item: BaseModel) -> bool:
    """Whether its address, or else its name, can be shown, and so be asked for."""
    name = getattr(item, "uri", None) or getattr(item, "uri_template", None)
    name = str(name or getattr(item, "name", ""))
    return text.one_line(name, MAX_NAME) == name


def _as_many_as_allowed(result: mcp_types.CompleteResult) -> mcp_types.CompleteResult:
    found = result.completion
    if len(found.values) <= MOST_VALUES:
        return result
    fewer = found.model_copy(update={"values": found.values[:MOST_VALUES], "has_more": True})
    return result.model_copy(update={"completion": fewer})
