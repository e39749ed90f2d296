"""The MCP server: answers requests, each by the part that knows about it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from divingbell import logs
from divingbell.amounts import amount
from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, InvalidInput, SandboxUnavailable
from divingbell.gateway.catalog.catalog import MAX_LIMIT
from divingbell.gateway.catalog.descriptions import SERVERS
from divingbell.host import requirements
from divingbell.principal import Principal
from divingbell.session.ownership import checked_name
from divingbell.settings.serve_modes import ServeMode, mode_of, serve_modes
from divingbell.settings.servers import Server as Entry
from divingbell.surfaces.mcp import (
    definitions,
    execution,
    limits,
    skills,
    visible_definitions,
    workspace,
)
from divingbell.surfaces.mcp.callers import (
    Context,
    Remembered,
    is_modern,
    principal_of,
    user_of_request,
)
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.definitions import NAME, Texts
from divingbell.surfaces.mcp.execution import Turn, at_once
from divingbell.surfaces.mcp.exits import Exits
from divingbell.surfaces.mcp.file_reads import Reading
from divingbell.surfaces.mcp.passthrough import passthrough
from divingbell.surfaces.mcp.passthrough.passthrough import Passthrough
from divingbell.surfaces.mcp.replicas import Alone, Replicas
from divingbell.surfaces.mcp.skills import ServedSkills
from divingbell.surfaces.mcp.subscriptions import Subscriptions
from divingbell.surfaces.mcp.suspended_calls import SuspendedCalls, read_state

log = logs.logger("divingbell")

MAX_NOTED = 20_000
MAX_CALLERS = 10_000
MAX_FAILURE = 4_000
MAX_QUERY = 10_000
"""Characters of a query that are taken. No index looks at more than the first 2,000."""
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
    """Says at the start of a connection of the older protocol which changes it announces, and to
    each user what is there for them."""

    told: Callable[[], str] | None = None
    """Returns the instructions for the user of this request."""

    @property
    def instructions(self) -> str | None:
        return self._instructions if self.told is None else self.told()

    @instructions.setter
    def instructions(self, given: str | None) -> None:
        self._instructions = given

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

    def __init__(
        self, bell: Divingbell, turn: Turn = at_once, replicas: Replicas | None = None
    ) -> None:
        """`turn` is what cells wait for before they run; `replicas` are those that serve the same
        users, where this is not the only process that does."""
        self._bell = bell
        self._turn = turn
        self._settings = bell.settings
        """As they were when it was made: what is passed through was chosen by them."""
        self.owned = bell.owned
        entries = {entry.name: entry for entry in bell.settings.servers if isinstance(entry, Entry)}
        host = bell.gateway.host
        ours = (skills.SCHEME,) if bell.settings.skills == "on" else ()
        self._ways = {
            mode: Passthrough(
                bell.gateway,
                passthrough.chosen(
                    mode, entries, host.names() if mode == "direct" else host.direct()
                ),
                bell.settings.idle_timeout,
                ours,
            )
            for mode in serve_modes(bell.settings)
        }
        """What is passed through, for users of each mode."""
        self._exits = Exits(bell.border)
        replicas = replicas or Alone()
        self.suspended = SuspendedCalls(replicas)
        self.subscriptions = Subscriptions(self._exits, replicas)
        self._files = workspace.Changes(self.owned)
        self._reading = Reading()
        self._levels: Remembered[types.LoggingLevel] = Remembered(MAX_CALLERS)
        self._searched: Remembered[str] = Remembered()
        """Findings that callers have read, until a session of theirs can be charged for them."""
        self._missed: Remembered[frozenset[str]] = Remembered(MAX_CALLERS)
        """Servers that are not available, as far as callers know."""
        self._conversing: Remembered[bool] = Remembered(MAX_CALLERS)
        """Callers that have run code: their models have read what there is to read."""
        self._skills = self._served_skills()
        configured = definitions.configured(bell.settings.servers)
        self._texts = self._texts_for([*configured, *bell.gateway.fleet.published()])
        usual = self._ways[bell.settings.mode]
        bell.ledgers.serve_models(self._texts.as_read(), lambda tool: not usual.passes(tool))
        self._stop_listening = bell.gateway.on_change(self._changed)
        self.server = self._build()

    def _served_skills(self) -> ServedSkills | None:
        """Return what offers skills to clients, where they are on."""
        if self._bell.settings.skills != "on":
            return None
        stores = self._bell.skills.stores
        return ServedSkills(stores, self._bell.gateway, self._exits, self._reading)

    def _texts_for(self, servers: Iterable[str]) -> Texts:
        settings = self._bell.settings
        return definitions.texts(
            servers,
            requirements.at_hand(settings.packages),
            settings.mounts,
            settings.privacy,
            skills=settings.skills == "on",
        )

    def _mode(self, user: str) -> ServeMode:
        """Return the mode that this user has: that of an experiment, else that of the settings."""
        return mode_of(self._settings, user)

    def _passing(self, user: str) -> Passthrough:
        """Return what is passed through for this user."""
        return self._ways[self._mode(user)]

    def _instructions(self) -> str:
        """Return the instructions for the user of this request."""
        user, settings = user_of_request(), self._bell.settings
        if self._mode(user) == "direct":
            return definitions.DIRECT
        privacy = settings.privacy_rules.word_for(user, settings.privacy)
        return self._texts.instructions_with(privacy)

    def _build(self) -> Server[Any]:
        passes = any(self._ways.values())
        server = _Server(
            NAME,
            version=version(NAME),
            instructions=self._texts.instructions,
            cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(0, "private")),
            # The SDK compares headers with it before anything else looks at the call.
            get_tool_input_schema=self._schema_of,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self.subscriptions.listen,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_list_prompts=self._list_prompts if passes else None,
            on_get_prompt=self._get_prompt if passes else None,
            on_completion=self._complete if passes else None,
        )
        server.told = self._instructions
        # Not through the constructor, which warns that logging is on its way out. Clients of the
        # older protocol have it all the same.
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        if self._skills is not None:
            server.extensions[skills.EXTENSION] = {}
            server.add_request_handler("skills/list", skills.ListParams, self._list_skills)
            server.add_request_handler("skills/get", skills.GetParams, self._get_skill)
        server.middleware.insert(0, limits.check)
        server.middleware.append(self.suspended.boundary())
        server.middleware.append(self.subscriptions.remember)
        server.middleware.append(self._exits.answer)
        return server

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        user = user_of_request()
        return self._passing(user).schema_of(name, user)

    async def close(self) -> None:
        """End every session, and every call that waits for its client."""
        self._stop_listening()
        self.subscriptions.close()
        await self.suspended.close()
        await self.owned.leave_all()

    async def leave(self, connection: str) -> None:
        """End all that belonged to a connection alone, which has ended."""
        self.subscriptions.leave(connection)
        for known in (self._levels, self._searched, self._missed, self._conversing):
            known.leave(connection)
        await self.suspended.close(connection)
        for way in self._ways.values():
            await way.contexts.leave(connection)
        await self.owned.leave(connection)
        self._bell.gateway.labels.leave(connection)

    # Tools

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        user = principal_of(ctx).user
        passing = self._passing(user)
        await passing.await_lists()
        own = () if self._mode(user) == "direct" else self._texts.tools
        return types.ListToolsResult(tools=[*own, *passing.definitions(user)])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        principal, given = principal_of(ctx), params.arguments or {}
        passing = self._passing(principal.user)
        has_own = self._mode(principal.user) != "direct"

        async def work(channel: ClientChannel) -> types.CallToolResult:
            own = self._own.get(params.name) if has_own else None
            if own is not None:
                try:
                    return await own(self, given, channel)
                except DivingbellError as error:
                    if self._bell.metrics is not None:
                        self._bell.metrics.answered(error.code)
                    if params.name == definitions.EXECUTE.name:
                        return execution.as_refusal(error)
                    return _text_result(str(error), is_error=True)
            await passing.await_lists()
            tool = passing.tools(principal.user).get(params.name)
            if tool is None:
                return await passing.refuse(params.name, given, channel)
            return await passing.call(tool, given, channel)

        result: types.CallToolResult | types.InputRequiredResult
        result = await self._converse(ctx, params, work)
        return result

    async def _converse(
        self,
        ctx: Context,
        params: types.InputResponseRequestParams,
        work: Callable[[ClientChannel], Awaitable[Any]],
    ) -> Any:
        """Do the work of a request; in the newer era it may take several requests."""
        channel = self._new_channel(ctx, params.input_responses)
        if not is_modern(ctx):
            channel.attach(ctx)
            return await work(channel)
        state = read_state(params.request_state)
        if "kept" in state:
            return await self.suspended.resume(ctx, state, params.input_responses)
        return await self.suspended.begin(ctx, channel, work)

    def _channel(self, ctx: Context) -> ClientChannel:
        """Return the channel of a request that no second one follows: its client can be asked in
        the older era alone."""
        channel = self._new_channel(ctx)
        if not is_modern(ctx):
            channel.attach(ctx)
        return channel

    def _new_channel(
        self, ctx: Context, given: Mapping[str, types.InputResponse] | None = None
    ) -> ClientChannel:
        principal = principal_of(ctx)
        return ClientChannel(principal, self._levels.get(principal), given, self._exits)

    async def _execute(
        self, given: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        name = checked_name(await self._written(given, "session_id", channel))
        teller = execution.Teller(channel)
        await self._sandbox(teller)
        session, lost = await self.owned.open(channel.principal, name)
        ledgers = self._bell.ledgers
        if channel.principal not in self._conversing:
            self._conversing[channel.principal] = True
            passing = self._passing(channel.user)
            ledgers.open_conversation(session.key, lambda tool: not passing.passes(tool))
        if searched := self._searched.pop(channel.principal, ""):
            ledgers.of(session.key).note_shown(searched)
        async with self._turn(channel.user, session.id):
            result = await execution.execute(session, given, teller)
        if self.subscriptions.wants(channel.principal):
            self.subscriptions.files_changed(
                channel.principal, *await self._files.look(channel.principal)
            )
        return execution.as_tool_result(result, name, LOST if lost else None)

    async def _sandbox(self, teller: execution.Teller) -> None:
        """Wait for the sandbox, which starts while clients are answered already.

        Raises:
            SandboxUnavailable: it could not be started.
        """
        try:
            await self._bell.ready(teller.say)
        except DivingbellError as error:
            raise SandboxUnavailable(NO_SANDBOX.format(str(error)[:MAX_FAILURE])) from None

    async def _search(
        self, given: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        detail = await self._written(given, "detail_level", channel) or "with_description"
        limit = given.get("limit", 10)
        if isinstance(limit, float) and limit.is_integer():
            limit = int(limit)  # JSON has one kind of number
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be a number from 1 to {MAX_LIMIT}")
        asked = (_text(given, "query") or "")[:MAX_QUERY]
        query = await self._exits.written(asked, channel.principal)
        server = await self._written(given, "server", channel)
        search = self._bell.gateway.discovery.search
        found = await search(query, detail, limit, server, channel.user)
        servers = []
        if query and server is None and found.is_of_several_servers:
            servers = (await search(query, SERVERS, limit, None, channel.user)).items
        missing = self._missing(channel.principal, again=not found.items)
        words = visible_definitions.findings(found, detail, missing, servers)
        noted = self._searched.pop(channel.principal, "") + words
        self._searched[channel.principal] = noted[-MAX_NOTED:]
        return _text_result(words)

    def _missing(self, principal: Principal, *, again: bool) -> list[str]:
        """Return the servers that no search finds anything of; once for a principal, or again."""
        states = self._bell.gateway.servers()
        missing = [state.name for state in states if state.state in ("failed", "broken")]
        known = self._missed.get(principal, frozenset())
        self._missed[principal] = frozenset(missing)
        return [name for name in missing if again or name not in known]

    async def _list_sessions(
        self, given: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        await self.owned.look(channel.principal)
        sessions = [
            {"session_id": name, "cells": session.cells, "busy": session.busy}
            for name, session in self.owned.of(channel.principal)
        ]
        lines = [
            f"{name}: {amount(session.cells, 'cell')}" + (", busy" if session.busy else "")
            for name, session in self.owned.of(channel.principal)
        ]
        result = _text_result("\n".join(lines) or "You have no sessions.")
        return result.model_copy(update={"structured_content": {"sessions": sessions}})

    async def _close_session(
        self, given: Mapping[str, Any], channel: ClientChannel
    ) -> types.CallToolResult:
        name = checked_name(await self._written(given, "session_id", channel))
        await self.owned.look(channel.principal)
        if not await self.owned.close(channel.principal, name):
            raise InvalidInput(f"you have no session {name!r}; list_sessions names yours")
        return _text_result(f"{name} has ended.")

    async def _written(
        self, given: Mapping[str, Any], name: str, channel: ClientChannel
    ) -> str | None:
        """Return a short text among the arguments, as the host takes it; None for none.

        Raises:
            InvalidInput: it is no text, or a long one.
        """
        value = _text(given, name)
        if value is None:
            return None
        if len(value) > limits.MAX_NAME:
            raise InvalidInput(f"{name} may have {limits.MAX_NAME:,} characters at most")
        written: str | None = await self._exits.written(value, channel.principal) or None
        return written

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
        principal = principal_of(ctx)
        await self.owned.look(principal)
        own = await workspace.resources_of(self.owned, principal)
        if self._skills is not None:
            own += await self._skills.resources(principal)
        passed = await self._passing(principal.user).resources(self._channel(ctx))
        return types.ListResourcesResult(resources=[*own, *passed])

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        passing = self._passing(principal_of(ctx).user)
        passed = await passing.templates(self._channel(ctx))
        own = [workspace.TEMPLATE] + ([] if self._skills is None else [skills.TEMPLATE])
        return types.ListResourceTemplatesResult(resource_templates=[*own, *passed])

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = await self._exits.written_address(str(params.uri), principal_of(ctx))
        if self._skills is not None and uri.startswith(skills.SCHEME):
            return await self._skills.read(principal_of(ctx), uri)
        passing = self._passing(principal_of(ctx).user)
        if not passing.addresses.has(uri):
            await self.owned.look(principal_of(ctx))
            return await workspace.read(self.owned, self._reading, principal_of(ctx), uri)
        result: types.ReadResourceResult | types.InputRequiredResult = await self._converse(
            ctx, params, lambda channel: passing.read(uri, channel)
        )
        return result

    async def _list_skills(self, ctx: Context, params: skills.ListParams) -> skills.ListResult:
        assert self._skills is not None
        return await self._skills.page(principal_of(ctx), params.cursor)

    async def _get_skill(self, ctx: Context, params: skills.GetParams) -> skills.GetResult:
        assert self._skills is not None
        uri = await self._exits.written_address(params.uri, principal_of(ctx))
        return await self._skills.get(principal_of(ctx), uri)

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        principal = principal_of(ctx)
        uri = await self._exits.written_address(str(params.uri), principal)
        addresses = self._passing(principal.user).addresses
        if addresses.has(uri):
            addresses.taken(uri)  # there has to be such a server
        elif uri.startswith(workspace.SCHEME):
            await self._files.look(principal)  # what it is like now, to tell a change from
        else:
            raise workspace.not_found(uri)
        self.subscriptions.subscribe(principal, str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.subscriptions.unsubscribe(principal_of(ctx), str(params.uri))
        return types.EmptyResult()

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        passing = self._passing(principal_of(ctx).user)
        found = await passing.prompts(self._channel(ctx))
        return types.ListPromptsResult(prompts=found)

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        passing = self._passing(principal_of(ctx).user)
        result: types.GetPromptResult | types.InputRequiredResult = await self._converse(
            ctx,
            params,
            lambda channel: passing.prompt(params.name, params.arguments or {}, channel),
        )
        return result

    async def _complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        passing = self._passing(principal_of(ctx).user)
        return await passing.complete(params, self._channel(ctx))

    # Changes of the upstream servers

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._levels[principal_of(ctx)] = params.level
        return types.EmptyResult()

    def _changed(self, kind: str, server: str) -> None:
        if kind in _EVENTS and any(server in way.servers for way in self._ways.values()):
            self.subscriptions.lists_changed(_EVENTS[kind]())
        if kind == "servers":
            self._tell_servers()

    def _tell_servers(self) -> None:
        """Name the servers that there are now, to clients that come and to those that list."""
        texts = self._texts_for(self._bell.gateway.fleet.packages())
        if texts != self._texts:
            self._texts, self.server.instructions = texts, texts.instructions
            self.subscriptions.lists_changed(ToolsListChanged())


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text")
    return value or None


def _text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
