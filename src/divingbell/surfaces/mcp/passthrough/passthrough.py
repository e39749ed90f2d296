"""Hybrid mode: chosen tools of upstream servers, and what belongs to them, appear directly.

With one such server its tools and prompts keep their names; with several they are called
`server__tool`, and addresses of resources have the server in front too. That depends on the
settings alone: no server can take a name from another one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp import MCPError

from divingbell import logs
from divingbell.errors import ToolFailed
from divingbell.gateway import callers
from divingbell.gateway.functions.host_tools import HOST
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.requests import ListKind
from divingbell.settings.patterns import Patterns
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Server
from divingbell.surfaces.mcp import visible_definitions
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.definitions import NAMES
from divingbell.surfaces.mcp.passthrough.addresses import Addresses
from divingbell.surfaces.mcp.passthrough.call_contexts import CallContexts, session_of
from divingbell.tool import Tool

log = logs.logger("divingbell")

SEPARATOR = "__"
MAX_NAME = 200
FIRST_PATIENCE = 3.0
"""Seconds that a list of tools waits for servers that are just starting: some clients give up after
five. They are told when there are more."""
T = TypeVar("T")


class Passthrough:
    """Passes tools, resources and prompts of chosen servers through, always by the gateway."""

    def __init__(
        self,
        gateway: Gateway,
        servers: Mapping[str, tuple[str, ...]],
        idle_timeout: float,
        ours: tuple[str, ...] = (),
    ) -> None:
        self._gateway = gateway
        self.contexts = CallContexts(gateway, idle_timeout)
        self._servers = servers
        """The servers that are passed through, and the patterns of their tools."""
        self._wanted = {name: Patterns(texts) for name, texts in servers.items()}
        self.addresses = Addresses(servers, ours)

    def __bool__(self) -> bool:
        return bool(self._servers)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._servers)

    # Tools

    async def await_lists(self) -> None:
        """Wait for the first lists of the servers, but not for one that hangs."""
        waiting = (self._gateway.fleet.wait_for_tools(server) for server in self._servers)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_PATIENCE):
                await asyncio.gather(*waiting)

    def tools(self, user: str) -> dict[str, Tool]:
        """Return the tools that this user may call directly, by the names that they have here."""
        found: dict[str, Tool] = {}
        for server, wanted in self._wanted.items():
            for tool in self._gateway.tools(server, user):
                name = self._name(server, tool.name)
                if not wanted.matches(tool.name):
                    continue
                if name in NAMES or not visible_definitions.NAME.fullmatch(name):
                    log.info(
                        "%s is not passed through: its name is taken, or clients can't use it",
                        tool.full_name,
                    )
                else:
                    found.setdefault(name, tool)
        return found

    def passes(self, tool: Tool) -> bool:
        """Whether clients have the definition of a tool, and their models read it."""
        wanted = self._wanted.get(tool.server)
        return wanted is not None and wanted.matches(tool.name)

    def schema_of(self, name: str, user: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool as this user sees it; None for one that is not there for
        them."""
        tool = None if name in NAMES else self.tools(user).get(name)
        return None if tool is None else tool.input_schema

    def definitions(self, user: str) -> list[types.Tool]:
        """Return the same tools as definitions of MCP."""
        return [visible_definitions.tool(name, tool) for name, tool in self.tools(user).items()]

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        """Call a tool for the client; a refusal is a result that says so."""
        try:
            async with self.contexts.begin(channel) as context:
                caller = self._caller(tool.server, channel)
                result = await self._gateway.requests.call(tool, arguments, context, caller)
                return self.addresses.renamed(tool.server, result)
        except ToolFailed as failed:
            if channel.missing is not None:
                raise channel.missing from None
            return types.CallToolResult(
                content=[types.TextContent(text=str(failed))], is_error=True
            )

    async def refuse(
        self, name: str, arguments: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        """Refuse a call of a tool that is not there for this client.

        Raises:
            MCPError: always.
        """
        words = f"there is no tool {name[:MAX_NAME]!r}"
        try:
            async with self.contexts.begin(channel) as context:
                await self._gateway.requests.refuse(name[:MAX_NAME], arguments, context, words)
        except ToolFailed as failed:
            raise MCPError(types.INVALID_PARAMS, str(failed)) from None

    # Resources

    async def resources(self, channel: ClientChannel) -> list[types.Resource]:
        """Return the resources of all servers that are passed through; a dead one has none."""
        found: dict[str, types.Resource] = {}
        async for server, resource in self._items_of_all("resources", channel):
            if uri := self.addresses.given(server, resource.uri):
                found.setdefault(uri, resource.model_copy(update={"uri": uri}))
        return list(found.values())

    async def templates(self, channel: ClientChannel) -> list[types.ResourceTemplate]:
        """Return the templates of resources of the same servers."""
        found: dict[str, types.ResourceTemplate] = {}
        async for server, template in self._items_of_all("templates", channel):
            if uri := self.addresses.given(server, template.uri_template):
                found.setdefault(uri, template.model_copy(update={"uri_template": uri}))
        return list(found.values())

    async def read(self, uri: str, channel: ClientChannel) -> types.ReadResourceResult:
        """Read a resource of the server that its address names.

        Raises:
            MCPError: there is none, or it can't be read.
        """
        server, own = self.addresses.taken(uri)
        async with self.contexts.begin(channel) as context:
            caller = self._caller(server, channel)
            read = self._gateway.requests.read_resource(server, own, context, caller)
            return self.addresses.renamed(server, await self._done(read, channel, {"uri": uri}))

    # Prompts

    async def prompts(self, channel: ClientChannel) -> list[types.Prompt]:
        """Return the prompts, by the names that they have here."""
        found: dict[str, types.Prompt] = {}
        async for server, prompt in self._items_of_all("prompts", channel):
            name = self._name(server, prompt.name)
            found.setdefault(name, prompt.model_copy(update={"name": name}))
        return list(found.values())

    async def prompt(
        self, name: str, arguments: Mapping[str, str], channel: ClientChannel
    ) -> types.GetPromptResult:
        """Get a prompt.

        Raises:
            MCPError: there is none, or it can't be made.
        """
        server, own = self._home(name)
        async with self.contexts.begin(channel) as context:
            caller = self._caller(server, channel)
            got = self._gateway.requests.get_prompt(server, own, arguments, context, caller)
            return self.addresses.renamed(server, await self._done(got, channel, None))

    async def complete(
        self, params: types.CompleteRequestParams, channel: ClientChannel
    ) -> types.CompleteResult:
        """Ask the server that has the prompt or the template what a value could go on with.

        Raises:
            MCPError: it can't say.
        """
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            server, own = self._home(ref.name)
            ref = ref.model_copy(update={"name": own})
        else:
            server, own = self.addresses.taken(ref.uri)
            ref = ref.model_copy(update={"uri": own})
        known = params.context.arguments if params.context else None
        async with self.contexts.begin(channel) as context:
            asked = self._gateway.requests.complete(server, ref, params.argument, known, context)
            return await self._done(asked, channel, None)

    def _caller(self, server: str, channel: ClientChannel) -> "PassthroughCaller":
        return PassthroughCaller(self._gateway.policy, server, channel)

    # Names

    def _name(self, server: str, name: str) -> str:
        return name if len(self._servers) == 1 else f"{server}{SEPARATOR}{name}"

    def _home(self, name: str) -> tuple[str, str]:
        """Return the server and its own name for a prompt.

        Raises:
            MCPError: no server has it.
        """
        if len(self._servers) == 1:
            return next(iter(self._servers)), name
        # The name of a server has no `__` in it; what follows may have.
        server, _, own = name.partition(SEPARATOR)
        if server not in self._servers:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {name[:200]!r}")
        return server, own

    # Failures

    async def _items_of_all(
        self, kind: ListKind, channel: ClientChannel
    ) -> AsyncIterator[tuple[str, Any]]:
        """Yield the items of each server's list; where one can't be had, the others' are of use.

        Raises:
            MCPError: the budget of the client is used up.
        """
        for server in self._servers:
            try:
                async with self.contexts.begin(channel) as context:
                    items = await self._gateway.requests.lists(server, context, kind)
            except ToolFailed as error:
                if error.code == "tool_limit":
                    raise _error(error, None) from None
                log.warning("a list of %s is left out: %s", server, error)
                continue
            for item in items:
                yield server, item

    async def _done(self, asked: Awaitable[T], channel: ClientChannel, data: Any) -> T:
        try:
            return await asked
        except ToolFailed as failed:
            raise channel.missing or _error(failed, data) from None


class PassthroughCaller:
    """A client of ours, as an upstream server reaches it (divingbell.gateway.callers.Caller)."""

    def __init__(self, policy: Policy, server: str, channel: ClientChannel) -> None:
        self._policy = policy
        self._server = server
        self._channel = channel
        self.session = session_of(channel.principal)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._channel.progress(progress, total, message)

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        await self._channel.log(params)

    async def elicit(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        return await callers.elicited(self._policy, self._server, params, self._channel)

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        # The client has asked for this tool by its name, and decides about its own model.
        return await self._channel.sample(params)

    async def answers(
        self, requests: dict[str, types.InputRequest]
    ) -> dict[str, types.InputResponse]:
        """Answer all questions of a result at once, by the server's own keys."""
        declined: dict[str, types.InputResponse] = {}
        asked: dict[str, types.InputRequest] = {}
        for key, request in requests.items():
            if not isinstance(request, types.ElicitRequest):
                asked[key] = request
            elif question := callers.question(self._policy, self._server, request.params):
                asked[key] = types.ElicitRequest(params=question)
            else:
                declined[key] = types.ElicitResult(action="decline")
        async with asyncio.timeout(self._policy.approval_timeout):
            return declined | await self._channel.answers(asked)


def chosen(
    mode: str, servers: Mapping[str, Server], functions: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the servers that are passed through, by the settings, with the tools of each;
    `functions` are those of the program itself."""
    if mode == "code":
        return {}
    found: dict[str, tuple[str, ...]] = {
        name: ("*",) if mode == "direct" else server.direct
        for name, server in servers.items()
        if (mode == "direct" or server.direct) and server.enabled
    }
    return found | {HOST: functions} if functions else found


def _error(failed: ToolFailed, data: Any) -> MCPError:
    is_wrong = failed.code == "tool_arguments"
    return MCPError(types.INVALID_PARAMS if is_wrong else types.INTERNAL_ERROR, str(failed), data)
