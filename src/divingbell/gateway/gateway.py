"""The gateway: upstream servers, their tools, and the way to them.

Hostile code stands in front of it, and servers that nobody trusts behind it. Whatever is asked of a
server passes the pipeline (divingbell.gateway.pipeline), and nowhere else.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from divingbell.border.border import Border
from divingbell.gateway.callers import Caller, SessionCaller
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import MAX_LIMIT, Catalog
from divingbell.gateway.catalog.descriptions import SERVERS, described
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.discovery import OWN, Discovery
from divingbell.gateway.pipeline import Pipeline, Request, Send
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.policy.pins import Pins
from divingbell.gateway.search.embedding_worker import EmbeddingWorker
from divingbell.gateway.search.index import Index
from divingbell.gateway.upstream.fleet import Fleet, MakeUpstream, OnChange, ServerState
from divingbell.journal.events import CallKind
from divingbell.journal.journal import Journal
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Entry
from divingbell.shares import weight
from divingbell.tool import Tool

if TYPE_CHECKING:
    import mcp_types

    from divingbell.gateway.search.embeddings import Embeddings
    from divingbell.gateway.upstream.upstream import Upstream

log = logging.getLogger("divingbell.gateway")

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


class Gateway:
    """All upstream servers, and what can be asked of them."""

    def __init__(
        self,
        rules: Policy,
        folder: Folder,
        pins: Pins,
        make_upstream: MakeUpstream,
        journal: Journal,
        border: Border,
        on_approval: Approver | None = None,
        load_embeddings: "Callable[[], Embeddings] | None" = None,
    ) -> None:
        self.policy = rules
        self.calls_at_once = rules.calls_at_once
        self._index = index = Index()
        self._encoding = asyncio.Lock()
        self.catalog = Catalog(folder, index, self._shown, self._is_public)
        self._embedding_worker = (
            EmbeddingWorker(index, load_embeddings) if load_embeddings else None
        )
        self.fleet = Fleet(self.catalog, make_upstream, journal)
        self.fleet.on_change(self._tools_changed)
        self.pipeline = Pipeline(
            rules, self.catalog, self.fleet, pins, journal, border, self.find, on_approval
        )
        self.discovery = Discovery(self)
        self._counts: dict[tuple[str | None, str | None], int] = {}
        self._counted_at = -1

    # Servers come and go while it runs: see divingbell.gateway.upstream.fleet.

    def add(self, entry: Entry) -> None:
        self.fleet.add(entry)

    async def remove(self, name: str) -> None:
        await self.fleet.remove(name)

    def servers(self) -> list[ServerState]:
        return self.fleet.servers()

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        return self.fleet.on_change(callback)

    async def stop(self) -> None:
        """End every connection, and remember what is to be remembered."""
        await self.fleet.stop()
        if self._embedding_worker is not None:
            await asyncio.to_thread(self._embedding_worker.stop)
        await self.pipeline.stop()

    def _tools_changed(self, kind: str, server: str) -> None:
        if kind == "tools" and self._embedding_worker is not None:
            self._embedding_worker.prepare(self.catalog.tools())

    def _shown(self, tool: Tool) -> Tool | None:
        """The tool as code may see it; None if nobody may call it, whatever the arguments."""
        return None if self.policy.audience(tool) == "nobody" else self.policy.without_bound(tool)

    def _is_public(self, tool: Tool) -> bool:
        """Whether its file may lie in /servers, which all sessions of all users see."""
        return self.policy.audience(tool) == "everyone"

    # What code may ask for (divingbell.session.calls.ToolGateway)

    @property
    def generation(self) -> int:
        return self.catalog.generation

    def cost(self, arguments: bytes) -> int:
        if len(arguments) > self.policy.max_arguments:
            return 0  # they will not be parsed
        return weight.weight_of(arguments, weight.MAX_ARGUMENTS) * weight.UNIT

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        if name in OWN:
            request = Request("question", name, context, "code", raw=arguments)
            await self.pipeline.run(
                request, lambda: self.discovery.answer(context, name, request.given)
            )
        else:
            request = Request("tool", name, context, "code", self._call_for_code, raw=arguments)
            await self.pipeline.run(request)
        assert request.answer is not None
        return request.answer

    def _call_for_code(
        self, upstream: "Upstream", request: Request, timeout: float
    ) -> Awaitable[Any]:
        tool = request.tool
        caller = SessionCaller(self.policy, request.context, tool.full_name)
        return upstream.call_tool(tool.name, request.arguments, timeout=timeout, caller=caller)

    async def find(self, name: str, user: str) -> Tool:
        """See `Catalog.find`; a server that is just starting, or is broken, is heard first.

        Raises:
            ToolFailed: there is no such tool, or its server is not there.
        """
        server = self.catalog.server_in(name)
        if server is not None:
            await self.fleet.wait_for_tools(server)
            if self.catalog.known(name) is None:
                await self.fleet.refresh(server)
                self.fleet.check(server)
        return self.catalog.find(name, self._seen_by(user))

    async def forget(self, session: str) -> None:
        await self.pipeline.meter.forget(session)
        self.pipeline.approvals.forget(session)
        await self.fleet.forget(session)

    def end_run(self, session: str) -> None:
        self.pipeline.approvals.end_run(session)

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
        if self._index.embeddings is None:
            return {}
        async with self._encoding:  # one at a time, so that the threads of others stay free
            try:
                return await weight.charged(lambda: self._index.nearness(query), charge)
            except Exception:  # a model that somebody brought may fail in any way
                log.exception("search goes on by words alone: the model failed")
                self._index.embeddings = None
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

    # What is asked of servers: all of it by the pipeline

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, caller: Caller
    ) -> "mcp_types.CallToolResult":
        """Call a tool for a client of ours, with the result as the server gave it.

        Raises:
            ToolFailed: it was refused, or the server could not be reached.
        """

        def send(upstream: "Upstream", request: Request, timeout: float) -> Awaitable[Any]:
            return upstream.call_tool(
                request.tool.name, request.arguments, timeout=timeout, caller=caller
            )

        request = Request("tool", tool.full_name, context, "client", send, given=arguments)
        await self.pipeline.run(request)
        result: mcp_types.CallToolResult = request.result
        return result

    async def read_resource(
        self, server: str, uri: str, context: CallContext, caller: Caller
    ) -> "mcp_types.ReadResourceResult":
        """Read a resource. Raises: as `call`."""
        result: mcp_types.ReadResourceResult = await self._request(
            "resource",
            f"{server}.read_resource",
            {"uri": uri},
            context,
            lambda upstream, request, timeout: upstream.read_resource(
                request.arguments["uri"], caller, timeout=timeout
            ),
        )
        return result

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str],
        context: CallContext,
        caller: Caller,
    ) -> "mcp_types.GetPromptResult":
        """Get a prompt. Raises: as `call`."""
        result: mcp_types.GetPromptResult = await self._request(
            "prompt",
            f"{server}.get_prompt",
            {"name": name, "arguments": dict(arguments)},
            context,
            lambda upstream, request, timeout: upstream.get_prompt(
                request.arguments["name"],
                request.arguments["arguments"],
                caller,
                timeout=timeout,
            ),
        )
        return result

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
        named = tuple(given)
        given["arguments"] = arguments = dict[str, Any](known or {})
        said = argument.value
        # Both are sent where a name comes twice.
        arguments[argument.name] = (
            [said, arguments[argument.name]] if argument.name in arguments else said
        )

        def send(upstream: "Upstream", request: Request, timeout: float) -> Awaitable[Any]:
            others = dict(request.arguments["arguments"])
            value = others.pop(argument.name)
            if isinstance(value, list):
                value, others[argument.name] = value
            return upstream.complete(
                ref.model_copy(update={each: request.arguments[each] for each in named}),
                argument.model_copy(update={"value": value}),
                None if known is None else others,
            )

        name = f"{server}.complete"
        result: mcp_types.CompleteResult
        result = await self._request("completion", name, given, context, send)
        return result

    async def lists(self, server: str, context: CallContext, *kinds: ListKind) -> list[Any]:
        """What a server has of these kinds, which all have one name in rules. Raises: as `call`."""

        async def send(upstream: "Upstream", request: Request, timeout: float) -> list[Any]:
            found = [await getattr(upstream, LISTS[kind][1])() for kind in kinds]
            return [item for items in found for item in items]

        name = f"{server}.{LISTS[kinds[0]][0]}"
        result: list[Any] = await self._request("list", name, {}, context, send)
        return result

    async def _request(
        self,
        kind: CallKind,
        name: str,
        given: Mapping[str, Any],
        context: CallContext,
        send: Send,
    ) -> Any:
        request = Request(kind, name, context, "client", send, given=given)
        await self.pipeline.run(request)
        return request.result


def _takes_address(tool: Tool) -> bool:
    """Whether a tool has a parameter for an address on the web."""
    properties = (tool.input_schema or {}).get("properties")
    names = islice(properties, MAX_PARAMETERS) if isinstance(properties, Mapping) else ()
    return any(str(name).lower() in ADDRESSES for name in names)


def _says_it_gets(tool: Tool) -> bool:
    return any(verb in tool.name.lower() for verb in GETTING)
