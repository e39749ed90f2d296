"""The MCP server: which request is answered by whom."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, InvalidInput
from divingbell.gateway.servers import Server as Entry
from divingbell.surfaces.mcp import definitions, execution, passing, showing, workspace
from divingbell.surfaces.mcp.callers import Caller, Context, caller_of, is_modern, user_at_the_door
from divingbell.surfaces.mcp.definitions import INSTRUCTIONS, NAME, TOOLS
from divingbell.surfaces.mcp.holdings import Holdings, checked
from divingbell.surfaces.mcp.passing import Passing
from divingbell.surfaces.mcp.person import Person
from divingbell.surfaces.mcp.rounds import Rounds, read_state
from divingbell.surfaces.mcp.watching import Watching

log = logging.getLogger("divingbell")

MAX_FOUND = 100
MAX_REASON = 200
MAX_NOTED = 20_000
MAX_SEARCHERS = 1_000
MAX_LEVELS = 10_000
LOST = "your earlier session has ended, idle for too long: its variables and files are gone"
_CACHEABLE: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
_EVENTS: Mapping[str, type[ToolsListChanged | PromptsListChanged | ResourcesListChanged]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


class _Server(Server[Any]):
    """Says at the start of a connection of the older protocol which changes it announces."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        passes = self.get_request_handler("prompts/list") is not None
        options = notification_options or NotificationOptions(
            prompts_changed=passes, resources_changed=True, tools_changed=passes
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Surface:
    """Answers the clients of one Divingbell, in both eras, over whichever transport."""

    def __init__(self, bell: Divingbell) -> None:
        self._bell = bell
        self.holdings = Holdings(bell)
        entries = {entry.name: entry for entry in bell.settings.servers if isinstance(entry, Entry)}
        chosen = passing.chosen(bell.settings.mode, entries)
        self._passing = Passing(bell.gateway, chosen, bell.settings.idle_timeout)
        self._rounds = Rounds()
        self._watching = Watching()
        self._files = workspace.Changes(self.holdings)
        self._levels: dict[Caller, types.LoggingLevel] = {}
        self._searched: dict[Caller, str] = {}
        """What callers have read of searches, until a session of theirs can be charged for it."""
        bell.gateway.books.surface = definitions.as_read()
        self._unhear = bell.gateway.on_change(self._changed)
        self.server = self._build()

    def _build(self) -> Server[Any]:
        passes = bool(self._passing)
        server = _Server(
            NAME,
            version=version(NAME),
            instructions=INSTRUCTIONS,
            cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(0, "private")),
            # The SDK compares headers with it before anything else looks at the call.
            get_tool_input_schema=lambda name: self._passing.schema_of(name, user_at_the_door()),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._watching.listen,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_list_prompts=self._list_prompts if passes else None,
            on_get_prompt=self._get_prompt if passes else None,
            on_completion=self._complete if passes else None,
        )
        # Not through the constructor, which warns that logging is on its way out. Clients of the
        # older protocol have it all the same.
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.middleware.append(self._rounds.boundary())
        server.middleware.append(self._watching.remember)
        server.middleware.append(showing.outgoing)
        return server

    async def close(self) -> None:
        """End every session, and every call that waits for its client."""
        self._unhear()
        self._watching.close()
        await self._rounds.close()
        await self.holdings.leave_all()

    async def leave(self, connection: str) -> None:
        """A connection has ended, and with it what belonged to it alone."""
        self._watching.leave(connection)
        for caller in [caller for caller in self._levels if caller.connection == connection]:
            del self._levels[caller]
        for caller in [caller for caller in self._searched if caller.connection == connection]:
            del self._searched[caller]
        await self._rounds.close(connection)
        await self._passing.visits.leave(connection)
        await self.holdings.leave(connection)

    # Tools

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        await self._passing.listed()
        passed = self._passing.definitions(caller_of(ctx).user)
        return types.ListToolsResult(tools=[*TOOLS, *passed])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller, given = caller_of(ctx), params.arguments or {}

        async def work(person: Person) -> types.CallToolResult:
            own = self._own.get(params.name)
            if own is not None:
                try:
                    return await own(self, given, person)
                except DivingbellError as error:
                    return _text(str(error), is_error=True)
            await self._passing.listed()
            tool = self._passing.tools(caller.user).get(params.name)
            if tool is None:
                raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:200]!r}")
            return await self._passing.call(tool, given, person)

        result: types.CallToolResult | types.InputRequiredResult
        result = await self._converse(ctx, params, work)
        return result

    async def _converse(
        self,
        ctx: Context,
        params: types.InputResponseRequestParams,
        work: Callable[[Person], Awaitable[Any]],
    ) -> Any:
        """Do the work of a request; in the newer era it may take several requests."""
        person = Person(caller_of(ctx), self._levels.get(caller_of(ctx)), params.input_responses)
        if not is_modern(ctx):
            person.attach(ctx)
            return await work(person)
        kept = read_state(params.request_state).get("kept")
        if kept is not None:
            return await self._rounds.resume(ctx, kept, params.input_responses)
        return await self._rounds.begin(ctx, person, work)

    def _person(self, ctx: Context) -> Person:
        """The person behind a request that has no second round: asked in the older era alone."""
        person = Person(caller_of(ctx), self._levels.get(caller_of(ctx)))
        if not is_modern(ctx):
            person.attach(ctx)
        return person

    async def _execute(self, given: Mapping[str, Any], person: Person) -> types.CallToolResult:
        name = checked(_optional(given, "session_id"))
        session, lost = await self.holdings.open(person.caller, name)
        searched = self._searched.pop(person.caller, "")
        if searched:
            self._bell.gateway.books.of(session.key).note_shown(searched)
        result = await execution.execute(session, given, person)
        if self._watching.wants(person.caller):
            self._watching.files_changed(person.caller, *await self._files.look(person.caller))
        return execution.shown(result, name, LOST if lost else None)

    async def _search(self, given: Mapping[str, Any], person: Person) -> types.CallToolResult:
        detail = _optional(given, "detail_level") or "with_description"
        limit = given.get("limit", 10)
        if isinstance(limit, float) and limit.is_integer():
            limit = int(limit)  # JSON has one kind of number
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_FOUND:
            raise InvalidInput(f"limit must be a number from 1 to {MAX_FOUND}")
        server = _optional(given, "server")
        await self._bell.gateway.fleet.listed(server)
        found = await self._bell.gateway.search(
            _optional(given, "query") or "",
            detail_level=detail,
            limit=limit,
            server=server,
            user=person.user,
        )
        words = "\n".join([_found(found, detail) or "No such tool.", *self._missing()])
        noted = self._searched.pop(person.caller, "") + words
        self._searched[person.caller] = noted[-MAX_NOTED:]
        while len(self._searched) > MAX_SEARCHERS:  # of connections that went without a word
            del self._searched[next(iter(self._searched))]
        return _text(words)

    def _missing(self) -> list[str]:
        """What a search can't find, and why."""
        states = self._bell.gateway.servers()
        if not states:
            return ["There are no MCP servers behind this one."]
        return [
            f"[not available: {state.name}: {state.reason[:MAX_REASON]}]"
            for state in states
            if state.state in ("failed", "broken")
        ]

    async def _list_sessions(
        self, given: Mapping[str, Any], person: Person
    ) -> types.CallToolResult:
        sessions = [
            {"session_id": name, "cells": session.cells, "busy": session.busy}
            for name, session in self.holdings.of(person.caller)
        ]
        lines = [
            f"{one['session_id']}: {one['cells']} cells" + (", busy" if one["busy"] else "")
            for one in sessions
        ]
        result = _text("\n".join(lines) or "You have no sessions.")
        return result.model_copy(update={"structured_content": {"sessions": sessions}})

    async def _close_session(
        self, given: Mapping[str, Any], person: Person
    ) -> types.CallToolResult:
        name = checked(_optional(given, "session_id"))
        if not await self.holdings.close(person.caller, name):
            raise InvalidInput(f"you have no session {name!r}; list_sessions names yours")
        return _text(f"{name} has ended.")

    _own: Mapping[str, Callable[..., Awaitable[types.CallToolResult]]] = {
        definitions.EXECUTE.name: _execute,
        definitions.SEARCH.name: _search,
        definitions.LIST_SESSIONS.name: _list_sessions,
        definitions.CLOSE_SESSION.name: _close_session,
    }

    # Resources, prompts, completions

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        caller = caller_of(ctx)
        own = await workspace.listed(self.holdings, caller)
        passed = await self._passing.resources(self._person(ctx))
        return types.ListResourcesResult(resources=[*own, *passed])

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        passed = await self._passing.templates(self._person(ctx))
        return types.ListResourceTemplatesResult(resource_templates=[workspace.TEMPLATE, *passed])

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = str(params.uri)
        if not self._passing.addresses.has(uri):
            return await workspace.read(self.holdings, caller_of(ctx), uri)
        result: types.ReadResourceResult | types.InputRequiredResult = await self._converse(
            ctx, params, lambda person: self._passing.read(uri, person)
        )
        return result

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri, caller = str(params.uri), caller_of(ctx)
        if self._passing.addresses.has(uri):
            self._passing.addresses.taken(uri)  # there has to be such a server
        elif uri.startswith(workspace.SCHEME):
            await self._files.look(caller)  # what it is like now, to tell a change from
        else:
            raise workspace.not_found(uri)
        self._watching.subscribe(caller, uri)
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._watching.unsubscribe(caller_of(ctx), str(params.uri))
        return types.EmptyResult()

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        found = await self._passing.prompts(self._person(ctx))
        return types.ListPromptsResult(prompts=found)

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        result: types.GetPromptResult | types.InputRequiredResult = await self._converse(
            ctx,
            params,
            lambda person: self._passing.prompt(params.name, params.arguments or {}, person),
        )
        return result

    async def _complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        return await self._passing.complete(params, self._person(ctx))

    # What changes behind us, and who is told

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._levels[caller_of(ctx)] = params.level
        while len(self._levels) > MAX_LEVELS:  # of connections that went without a word
            del self._levels[next(iter(self._levels))]
        return types.EmptyResult()

    def _changed(self, kind: str, server: str) -> None:
        if kind in _EVENTS and server in self._passing.servers:
            self._watching.lists_changed(_EVENTS[kind]())


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text")
    return value or None


def _found(found: list[dict[str, Any]], detail: str) -> str:
    if detail == "full":
        return "\n".join(json.dumps(tool, ensure_ascii=False) for tool in found)
    if detail == "with_description":
        return "\n".join(f"{tool['name']}: {tool['description']}".rstrip(": ") for tool in found)
    return "\n".join(tool["name"] for tool in found)


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
