"""The door: whatever is asked of a server passes here, and nowhere else.

Calls of tools, resources, prompts, lists and completions, by code and by clients alike: is there
room in the budget → is there such a thing → may it be asked (divingbell.gateway.admission: rules,
arguments, a person) → upstream → is the result what was promised → back.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from divingbell.errors import ToolFailed
from divingbell.gateway.admission import Admission
from divingbell.gateway.callers import Caller, SessionCaller
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import MAX_LIMIT, SERVERS, Catalog, described
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.discovery import OWN, Discovery
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.policy.meter import Meter
from divingbell.gateway.policy.pins import Pins
from divingbell.gateway.search.embedding_worker import EmbeddingWorker
from divingbell.gateway.search.index import Index
from divingbell.gateway.upstream.fleet import Fleet, MakeUpstream, OnChange, ServerState
from divingbell.journal.recorder import LedgerRecorder
from divingbell.journal.totals import Totals
from divingbell.models import Ledger, Result
from divingbell.principal import Principal
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Entry
from divingbell.shares import weight
from divingbell.tool import Tool
from divingbell_inside import frames

if TYPE_CHECKING:
    import mcp_types

    from divingbell.gateway.search.embeddings import Embeddings
    from divingbell.gateway.upstream.upstream import Upstream

log = logging.getLogger("divingbell.gateway")

MAX_NAME = 200
"""Characters of what was called, in a message."""
LARGE_ARGUMENTS = 1 << 16
"""Bytes; more are parsed in a thread."""
MAX_COUNTS = 1_000
FETCHING = "fetch the content of a web page or download a file from a url"
MAX_FETCHING = 2
MAX_PARAMETERS = 100
GETTING = ("fetch", "get", "download", "read", "scrape", "crawl", "extract", "request", "navigate")
"""In the name of a tool: others with an address may open it for a person, or post to it."""
ADDRESSES = frozenset({"url", "urls", "uri", "link", "href", "address"})
LISTS = {
    "resources": ("list_resources", "list_resources"),
    "templates": ("list_resources", "list_resource_templates"),
    "prompts": ("list_prompts", "list_prompts"),
}
"""For each list its name in rules, and the method of an Upstream."""

ListKind = Literal["resources", "templates", "prompts"]
R = TypeVar("R")


class Gateway:
    """All upstream servers, the rules, and the way through."""

    def __init__(
        self,
        rules: Policy,
        folder: Folder,
        pins: Pins,
        make_upstream: MakeUpstream,
        on_approval: Approver | None = None,
        store: Totals | None = None,
        load_meaning: "Callable[[], Embeddings] | None" = None,
    ) -> None:
        self.policy = rules
        self.calls_at_once = rules.calls_at_once
        self._index = index = Index()
        self._encoding = asyncio.Lock()
        self.catalog = Catalog(folder, index, self._shown, self._is_public)
        self._learner = EmbeddingWorker(index, load_meaning) if load_meaning else None
        self.fleet = Fleet(self.catalog, make_upstream)
        self.fleet.on_change(self._tools_changed)
        self.books = LedgerRecorder(store, self.catalog.tools)
        self.admission = Admission(rules, self.catalog, pins, on_approval)
        self.discovery = Discovery(self)
        self._meter = Meter(rules)
        self._counts: dict[tuple[str | None, str | None], int] = {}
        self._counted_at = -1

    # Servers come and go while it runs: see divingbell.gateway.upstream.fleet.

    def add(self, entry: Entry) -> None:
        self.fleet.add(entry)

    async def remove(self, name: str) -> None:
        await self.fleet.remove(name)

    def servers(self) -> list[ServerState]:
        return self.fleet.servers()

    def upstream(self, name: str, session: str | None = None) -> "Upstream":
        return self.fleet.upstream(name, session)

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        return self.fleet.on_change(callback)

    async def stop(self) -> None:
        """End every connection, and remember what is to be remembered."""
        await self.fleet.stop()
        await self.books.close()
        if self._learner is not None:
            await asyncio.to_thread(self._learner.stop)
        await self.admission.stop()

    def _tools_changed(self, kind: str, server: str) -> None:
        if kind == "tools":
            self.books.listed(self.catalog.tools(server))
            if self._learner is not None:
                self._learner.learn(self.catalog.tools())

    def _shown(self, tool: Tool) -> Tool | None:
        """The tool as code may see it; None if nobody may call it, whatever the arguments."""
        return None if self.policy.audience(tool) == "nobody" else self.policy.without_bound(tool)

    def _is_public(self, tool: Tool) -> bool:
        """Whether its file may lie in /servers, which all sessions of all users see."""
        return self.policy.audience(tool) == "everyone"

    # What code may ask for (divingbell.session.calls.Door)

    @property
    def generation(self) -> int:
        return self.catalog.generation

    def cost(self, arguments: bytes) -> int:
        if len(arguments) > self.policy.max_arguments:
            return 0  # they will not be parsed
        return weight.weight_of(arguments, weight.MAX_ARGUMENTS) * weight.UNIT

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        # Whatever is asked counts: also what is not there costs the host some work.
        await self._count(context)
        self.policy.check_arguments(name[:MAX_NAME], arguments)
        if name in OWN:
            answer = await self.discovery.answer(context, name, await _parsed(name, arguments))
            self.policy.check_result_size(name, len(answer.body))
            return answer
        tool = await self.find(name, context.user)
        given = await _parsed(name, arguments)
        if await self.admission.problems(tool, given, context) and await self.fleet.refreshed(
            tool.server
        ):
            tool = await self.find(name, context.user)  # it has changed since its list was kept
        caller = SessionCaller(self.policy, context, tool.full_name)
        result = await self._call(tool, given, context, caller)
        await self._note_call(tool, given, result, context)
        return await self._packed(tool, result, context)

    async def _note_call(
        self,
        tool: Tool,
        given: Mapping[str, Any],
        result: "mcp_types.CallToolResult",
        context: CallContext,
    ) -> None:
        """Enter into the books what code has got and no model has read."""
        shown = await weight.beside(_shown, result)
        images = sum(block.type == "image" for block in result.content)
        accountant = self.books.of(context.key)
        accountant.note_call(tool.full_name, json.dumps(given), shown, images=images)

    async def _packed(
        self, tool: Tool, result: "mcp_types.CallToolResult", context: CallContext
    ) -> Answer:
        from divingbell.gateway.schema import outcome

        wire = await outcome.wire_of(tool, result, context.charge)
        body = await weight.beside(_json, wire)
        self.policy.check_result_size(tool.full_name, len(body))
        return Answer(body, "tool")

    async def find(self, name: str, user: str) -> Tool:
        """See `Catalog.find`; a server that is just starting, or is broken, is heard first.

        Raises:
            ToolFailed: there is no such tool, or its server is not there.
        """
        server = self.catalog.server_in(name)
        if server is not None:
            await self.fleet.listed(server)
            if self.catalog.known(name) is None:
                await self.fleet.refreshed(server)
                self.fleet.check(server)
        return self.catalog.find(name, self._seen_by(user))

    async def forget(self, session: str) -> None:
        await self._meter.forget(session)
        self.admission.approvals.forget(session)
        self.books.forget(session)
        await self.fleet.forget(session)

    def end_run(self, session: str) -> None:
        self.admission.approvals.end_run(session)

    async def balance(
        self, session: str, principal: Principal, code: str, result: Result
    ) -> Ledger | None:
        """The ledger of an execution; none where there are no tools to save anything on."""
        if not self.fleet:
            return None
        return await self.books.balance(session, principal, code, result)

    async def search(
        self,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
        user: str = "",
        charge: Callable[[float], object] = lambda _: None,
    ) -> list[dict[str, Any]]:
        """Find tools, the best first, described as far as was asked for.

        With the level "servers" it is the best servers that are found, in which one can look then.
        `charge` gets the processor time that was spent on it beside the event loop.

        Raises: as `Catalog.search`.
        """
        near = await self._nearness(query, charge)
        wanted = self._seen_by(user)
        if detail_level == SERVERS:
            return self.catalog.best_servers(query, limit, server, wanted, near)
        found = self.catalog.search(query, detail_level, limit, server, wanted, near)
        return await described(found, detail_level)

    async def _nearness(
        self, query: str, charge: Callable[[float], object]
    ) -> Mapping[bytes, float]:
        if self._index.meaning is None:
            return {}
        async with self._encoding:  # one at a time, so that the threads of others stay free
            try:
                return await weight.charged(lambda: self._index.nearness(query), charge)
            except Exception:  # a model that somebody brought may fail in any way
                log.exception("search goes on by words alone: the model failed")
                self._index.meaning = None
                return {}

    def tools(self, server: str | None = None, user: str = "") -> list[Tool]:
        """The tools that this user may see."""
        return [tool for tool in self.catalog.tools(server) if self.may_see(tool, user)]

    def count(self, server: str | None, user: str) -> int:
        """How many they are. Counted once, because each search asks."""
        if self._counted_at != self.catalog.revision or len(self._counts) >= MAX_COUNTS:
            self._counts, self._counted_at = {}, self.catalog.revision
        if (server, user) not in self._counts:
            self._counts[server, user] = len(self.tools(server, user))
        return self._counts[server, user]

    def may_see(self, tool: Tool, user: str) -> bool:
        """Whether there are arguments with which this user may call the tool."""
        return self.policy.visible(tool, user)

    def _seen_by(self, user: str) -> Callable[[Tool], bool]:
        return lambda tool: self.may_see(tool, user)

    # What hints name (divingbell.session.hints.Surroundings)

    @property
    def has_servers(self) -> bool:
        return bool(self.fleet)

    def fetching(self, user: str) -> list[str]:
        """Tools that could get something from an address, as code names them: a few.

        By words alone: whoever fails without end must not cost much.
        """
        found = self._index.search(FETCHING, MAX_LIMIT, wanted=self._seen_by(user), near={})
        fitting = (tool for tool in found if _takes_address(tool) and _says_it_gets(tool))
        return [f"servers.{tool.package}.{tool.function}" for tool in islice(fitting, MAX_FETCHING)]

    def signature_of(self, name: str, user: str) -> str | None:
        """How a tool is called that this user may see, by `package.function`."""
        tool = self.catalog.known(name)
        if tool is None or not self.may_see(tool, user):
            return None
        return wrappers.signature(self.policy.without_bound(tool))

    # Through the door

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, caller: "Caller"
    ) -> "mcp_types.CallToolResult":
        """Call a tool for a client of ours, with the result as the server gave it.

        Raises:
            ToolFailed: it was refused, or the server could not be reached.
        """
        await self._count(context)
        found = self.catalog.find(tool.full_name, self._seen_by(context.user))
        self.policy.check_arguments(found.full_name, json.dumps(arguments).encode())
        result = await self._call(found, arguments, context, caller)
        await self._check_result(found, result)
        return result

    async def read_resource(
        self, server: str, uri: str, context: CallContext, caller: "Caller"
    ) -> "mcp_types.ReadResourceResult":
        """Read a resource. Raises: as `call`."""
        return await self._request(
            server,
            "read_resource",
            {"uri": uri},
            context,
            lambda upstream, timeout: upstream.read_resource(uri, caller, timeout=timeout),
        )

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str],
        context: CallContext,
        caller: "Caller",
    ) -> "mcp_types.GetPromptResult":
        """Get a prompt. Raises: as `call`."""
        return await self._request(
            server,
            "get_prompt",
            {"name": name, "arguments": dict(arguments)},
            context,
            lambda upstream, timeout: upstream.get_prompt(name, arguments, caller, timeout=timeout),
        )

    async def complete(
        self,
        server: str,
        ref: "mcp_types.PromptReference | mcp_types.ResourceTemplateReference",
        argument: "mcp_types.CompletionArgument",
        known: Mapping[str, str] | None,
        context: CallContext,
    ) -> "mcp_types.CompleteResult":
        """Ask what a value could go on with. Raises: as `call`."""
        given: dict[str, Any]
        given = {"name": ref.name} if ref.type == "ref/prompt" else {"uri": ref.uri}
        given["arguments"] = arguments = dict[str, Any](known or {})
        said = argument.value
        # Both are sent where a name comes twice.
        arguments[argument.name] = (
            [said, arguments[argument.name]] if argument.name in arguments else said
        )
        return await self._request(
            server,
            "complete",
            given,
            context,
            lambda upstream, _: upstream.complete(ref, argument, known),
        )

    async def lists(self, server: str, context: CallContext, *kinds: ListKind) -> list[Any]:
        """What a server has of these kinds, which all have one name in rules. Raises: as `call`."""

        async def ask(upstream: "Upstream", _: float) -> list[Any]:
            found = [await getattr(upstream, LISTS[kind][1])() for kind in kinds]
            return [item for items in found for item in items]

        return await self._request(server, LISTS[kinds[0]][0], {}, context, ask)

    async def _request(
        self,
        server: str,
        name: str,
        given: Mapping[str, Any],
        context: CallContext,
        ask: 'Callable[["Upstream", float], Awaitable[R]]',
    ) -> R:
        """Put to a server what is no call of a tool; for rules it is `server.read_resource` …"""
        await self._count(context)
        server = self.catalog.check_server(str(server))
        tool = Tool(server, name, server, name)
        self.policy.check_arguments(tool.full_name, json.dumps(given).encode())
        self.policy.check_bound(tool, given.get("arguments", {}))
        await self.admission.admit_request(tool, given, context)
        await self.fleet.begun(server)
        upstream = self.fleet.upstream(server, context.key)
        context.sent = True
        result = await ask(upstream, self._timeout(tool))
        await self._check_result(tool, result)
        return result

    async def _check_result(self, tool: Tool, result: Any) -> None:
        self.policy.check_result_size(tool.full_name, await weight.beside(_size, result))

    async def _count(self, context: CallContext) -> None:
        """Count a call against the budgets, once. Raises ToolFailed if there is no room for it."""
        if not context.counted:
            context.counted = True
            await self._meter.reserve(context.key, context.user, context.run)

    def _timeout(self, tool: Tool) -> float:
        entry = self.fleet.server(tool.server)
        return (entry.timeout if entry else None) or self.policy.tool_timeout

    async def _call(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext, caller: "Caller"
    ) -> "mcp_types.CallToolResult":
        arguments = await self.admission.admit(tool, given, context)
        upstream = self.fleet.upstream(tool.server, context.key)
        context.sent = True
        return await upstream.call_tool(
            tool.name, arguments, timeout=self._timeout(tool), caller=caller
        )


def _takes_address(tool: Tool) -> bool:
    """Whether a tool has a parameter for an address on the web."""
    properties = (tool.input_schema or {}).get("properties")
    names = islice(properties, MAX_PARAMETERS) if isinstance(properties, Mapping) else ()
    return any(str(name).lower() in ADDRESSES for name in names)


def _says_it_gets(tool: Tool) -> bool:
    return any(verb in tool.name.lower() for verb in GETTING)


def _json(wire: Mapping[str, Any]) -> bytes:
    return json.dumps(wire, separators=(",", ":")).encode()


def _size(result: Any) -> int:
    items = result if isinstance(result, list) else [result]
    return sum(len(item.model_dump_json(by_alias=True)) for item in items)


def _shown(result: "mcp_types.CallToolResult") -> str:
    """What a client would have shown to its model; the books count it."""
    texts = "\n".join(block.text for block in result.content if block.type == "text")
    if not texts and result.structured_content is not None:
        return json.dumps(result.structured_content)
    return texts


async def _parsed(name: str, arguments: bytes) -> dict[str, Any]:
    try:
        if len(arguments) > LARGE_ARGUMENTS:
            return await asyncio.to_thread(frames.parse, arguments)
        return frames.parse(arguments)
    except frames.FrameError as error:
        words = str(error).removeprefix("the header ")
        raise ToolFailed(f"{name[:MAX_NAME]}: the arguments: {words}", "tool_arguments") from None
