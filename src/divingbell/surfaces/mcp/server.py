"""The MCP server: which request is answered by whom."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from divingbell import requirements
from divingbell.amounts import amount
from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, InvalidInput, SandboxUnavailable
from divingbell.gateway.catalog import MAX_LIMIT, SERVERS
from divingbell.gateway.servers import Server as Entry
from divingbell.surfaces.mcp import definitions, execution, passing, showing, workspace
from divingbell.surfaces.mcp.callers import (
    Caller,
    Context,
    Remembered,
    caller_of,
    is_modern,
    user_at_the_door,
)
from divingbell.surfaces.mcp.definitions import NAME, Texts
from divingbell.surfaces.mcp.holdings import Holdings, checked
from divingbell.surfaces.mcp.passing import Passing
from divingbell.surfaces.mcp.person import Person
from divingbell.surfaces.mcp.reading import Reading
from divingbell.surfaces.mcp.rounds import Rounds, read_state
from divingbell.surfaces.mcp.watching import Watching

log = logging.getLogger("divingbell")

MAX_NOTED = 20_000
MAX_CALLERS = 10_000
MAX_FAILURE = 4_000
NO_SANDBOX = """\
No code can be run: the sandbox could not be started.
{}
Tell the person who runs Divingbell. Once this is mended, `divingbell serve` has to be started \
again; `divingbell doctor` on that machine says more."""
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
            prompts_changed=passes, resources_changed=True, tools_changed=True
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
        self._reading = Reading()
        self._levels: Remembered[types.LoggingLevel] = Remembered(MAX_CALLERS)
        self._searched: Remembered[str] = Remembered()
        """What callers have read of searches, until a session of theirs can be charged for it."""
        self._missed: Remembered[frozenset[str]] = Remembered(MAX_CALLERS)
        """Servers that are not available, as far as callers know."""
        self._conversing: Remembered[bool] = Remembered(MAX_CALLERS)
        """Callers that have run code: their models have read what there is to read."""
        self._texts = self._told(definitions.configured(bell.settings.servers))
        bell.gateway.books.serve_models(
            self._texts.as_read(), lambda tool: not self._passing.passes(tool)
        )
        self._unhear = bell.gateway.on_change(self._changed)
        self.server = self._build()

    def _told(self, servers: Iterable[str]) -> Texts:
        settings = self._bell.settings
        return definitions.texts(servers, requirements.at_hand(settings.packages), settings.mounts)

    def _build(self) -> Server[Any]:
        passes = bool(self._passing)
        server = _Server(
            NAME,
            version=version(NAME),
            instructions=self._texts.instructions,
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
        for known in (self._levels, self._searched, self._missed, self._conversing):
            known.leave(connection)
        await self._rounds.close(connection)
        await self._passing.visits.leave(connection)
        await self.holdings.leave(connection)

    # Tools

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        await self._passing.listed()
        passed = self._passing.definitions(caller_of(ctx).user)
        return types.ListToolsResult(tools=[*self._texts.tools, *passed])

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
        name, teller = checked(_optional(given, "session_id")), execution.Teller(person)
        await self._sandbox(teller)
        session, lost = await self.holdings.open(person.caller, name)
        books = self._bell.gateway.books
        books.read_by_model(session.key, first=person.caller not in self._conversing)
        self._conversing[person.caller] = True
        if searched := self._searched.pop(person.caller, ""):
            books.of(session.key).note_shown(searched)
        result = await execution.execute(session, given, teller)
        if self._watching.wants(person.caller):
            self._watching.files_changed(person.caller, *await self._files.look(person.caller))
        return execution.shown(result, name, LOST if lost else None)

    async def _sandbox(self, teller: execution.Teller) -> None:
        """Wait for the sandbox, which starts while clients are answered already.

        Raises:
            SandboxUnavailable: it could not be started.
        """
        try:
            await self._bell.ready(teller.say)
        except DivingbellError as error:
            raise SandboxUnavailable(NO_SANDBOX.format(str(error)[:MAX_FAILURE])) from None

    async def _search(self, given: Mapping[str, Any], person: Person) -> types.CallToolResult:
        detail = _optional(given, "detail_level") or "with_description"
        limit = given.get("limit", 10)
        if isinstance(limit, float) and limit.is_integer():
            limit = int(limit)  # JSON has one kind of number
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be a number from 1 to {MAX_LIMIT}")
        query, server = _optional(given, "query") or "", _optional(given, "server")
        search = self._bell.gateway.discovery.search
        found = await search(query, detail, limit, server, person.user)
        servers = []
        if query and server is None and found.is_of_several_servers:
            servers = (await search(query, SERVERS, limit, None, person.user)).items
        missing = self._missing(person.caller, again=not found.items)
        words = showing.findings(found, detail, missing, servers)
        noted = self._searched.pop(person.caller, "") + words
        self._searched[person.caller] = noted[-MAX_NOTED:]
        return _text(words)

    def _missing(self, caller: Caller, *, again: bool) -> list[str]:
        """The servers that no search finds anything of; once for a caller, or again."""
        states = self._bell.gateway.servers()
        missing = [state.name for state in states if state.state in ("failed", "broken")]
        known = self._missed.get(caller, frozenset())
        self._missed[caller] = frozenset(missing)
        return [name for name in missing if again or name not in known]

    async def _list_sessions(
        self, given: Mapping[str, Any], person: Person
    ) -> types.CallToolResult:
        sessions = [
            {"session_id": name, "cells": session.cells, "busy": session.busy}
            for name, session in self.holdings.of(person.caller)
        ]
        lines = [
            f"{name}: {amount(session.cells, 'cell')}" + (", busy" if session.busy else "")
            for name, session in self.holdings.of(person.caller)
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
            return await workspace.read(self.holdings, self._reading, caller_of(ctx), uri)
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
        return types.EmptyResult()

    def _changed(self, kind: str, server: str) -> None:
        if kind in _EVENTS and server in self._passing.servers:
            self._watching.lists_changed(_EVENTS[kind]())
        if kind == "servers":
            self._tell_servers()

    def _tell_servers(self) -> None:
        """Name the servers that there are now, to clients that come and to those that list."""
        texts = self._told(self._bell.gateway.fleet.packages())
        if texts != self._texts:
            self._texts, self.server.instructions = texts, texts.instructions
            self._watching.lists_changed(ToolsListChanged())


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text")
    return value or None


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
