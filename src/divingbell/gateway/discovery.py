"""Questions that code puts to the gateway itself: what is there, and what does it say."""

import functools
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.catalog.catalog import MAX_LIMIT, Catalog
from divingbell.gateway.catalog.descriptions import SERVERS, described
from divingbell.gateway.catalog.wrappers import module_source
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.functions.host_tools import HostTools
from divingbell.gateway.requests import ServerRequests
from divingbell.gateway.search.index import MAX_QUERY
from divingbell.gateway.search.stemming import stems
from divingbell.gateway.upstream.fleet import Fleet
from divingbell.gateway.visible_tools import VisibleTools
from divingbell.models import Event
from divingbell.settings import policy
from divingbell.settings.policy import Policy
from divingbell.tool import Tool


class Discovery:
    """Answers them. What a user may not call is not shown to that user."""

    def __init__(
        self,
        rules: Policy,
        catalog: Catalog,
        fleet: Fleet,
        visible: VisibleTools,
        requests: ServerRequests,
        host: HostTools,
    ) -> None:
        self._policy = rules
        self._catalog = catalog
        self._fleet = fleet
        self._visible = visible
        self._requests = requests
        self._host = host

    async def answer(self, name: str, context: CallContext, arguments: Mapping[str, Any]) -> Answer:
        """Answer one of `OWN`.

        Raises:
            ToolFailed: it can't be answered, or the arguments are not right.
        """
        own = OWN[name]
        try:
            inspect.signature(own).bind(self, context, **arguments)
            answer: Answer = await own(self, context, **arguments)
            return answer
        except (InvalidInput, TypeError) as error:
            raise ToolFailed(f"{name}: {error}", "tool_arguments") from None

    async def search(
        self,
        query: str,
        detail_level: str,
        limit: int,
        server: str | None,
        user: str,
        session: str = "",
    ) -> "Findings":
        """Search as `Gateway.search` does, which is not all that there is: count the rest too.

        Raises:
            ToolFailed: the server that is named can't be used now, and its tools are not known.
            As `Gateway.search`.
        """
        query = query[:MAX_QUERY]  # no search reads more of it
        where = None if server is None else self._catalog.check_server(server)
        await self._fleet.wait_for_tools(where)
        if where is not None and not self._catalog.tools(where):
            self._fleet.check(where)
        find = functools.partial(
            self._visible.search, query, limit=limit, server=where, user=user, session=session
        )
        found = await find(detail_level=detail_level)
        if detail_level == SERVERS:
            return Findings(found, len(found), not stems(query))
        fitting = len(found)
        if detail_level == "full":  # of which there are as many as are not too long together
            fitting = len(await find(detail_level="name_only"))
        is_cut = fitting > len(found) or fitting >= min(limit, MAX_LIMIT)
        total = self._visible.count(where, user, session) if is_cut else len(found)
        return Findings(found, total, not stems(query))

    async def _search_tools(
        self,
        context: CallContext,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
    ) -> Answer:
        found = await self.search(
            str(query),
            detail_level,
            limit,
            None if server is None else str(server),
            context.user,
            context.key,
        )
        rest = found.rest()
        return _value(found.items, note=rest and f"search_tools: {rest}")

    async def _list_tools(self, context: CallContext, server: str | None = None) -> Answer:
        where = None if server is None else self._catalog.check_server(str(server))
        await self._fleet.wait_for_tools(where)
        found = self._visible.tools(where, context.user, context.key)
        return _value([tool.full_name for tool in found])

    async def _tool_details(self, context: CallContext, name: str) -> Answer:
        tool = await self._visible.find(str(name), context.user, context.key)
        if (denied := self._denied(tool, context)) is not None:
            raise denied
        [found] = await described([self._policy.without_bound(tool)], "full")
        return _value(found)

    async def _await_server(
        self, context: CallContext, server: str, tool: str | None = None
    ) -> Answer:
        """For an import that did not find what it wanted: look again after this.

        A tool that is not for everyone has no file; whoever may call it is told here what would
        be in it, and whoever may not is told why.
        """
        name = self._catalog.check_server(str(server))
        if self._fleet.is_awaited(name):
            context.tell(Event("progress", text="connecting to the server", tool=name))
        await self._fleet.wait_for_tools(name)
        await self._fleet.refresh(name)
        await self._fleet.written()
        if not self._catalog.tools(name):
            self._fleet.check(name)
        return self.told(context, name, tool)

    def told(self, context: CallContext, server: str, tool: str | None) -> Answer:
        """Answer an import by what is known already: nothing is asked of a server."""
        seen = [] if tool is None else self._visible.tools(server, context.user, context.key)
        source = next((module_source(each) for each in seen if each.function == tool), None)
        known = None if tool is None else self._known(f"{server}.{tool}", context)
        denied = None if known is None else self._denied(known, context)
        return _value(
            {
                "generation": self.generation(context.key),
                "source": source,
                "denied": None if denied is None else str(denied),
            }
        )

    def generation(self, session: str) -> int:
        """Return a number that changes when the session with this key has others to import."""
        return self._catalog.generation + self._host.revision(session)

    def _known(self, name: str, context: CallContext) -> Tool | None:
        return self._host.find(name, context.key) or self._catalog.known(name)

    def _denied(self, tool: Tool, context: CallContext) -> ToolFailed | None:
        """Why this user may not call a tool with any arguments."""
        if self._visible.may_see(tool, context.user):
            return None
        return policy.denied(tool, self._policy.decide(tool, {}, context.user))

    async def _list_resources(self, context: CallContext, server: str) -> Answer:
        lists = self._requests.lists_for_code
        return await lists(str(server), context, "resources", "templates")

    async def _read_resource(self, context: CallContext, server: str, uri: str) -> Answer:
        return await self._requests.read_resource_for_code(str(server), str(uri), context)

    async def _list_prompts(self, context: CallContext, server: str) -> Answer:
        return await self._requests.lists_for_code(str(server), context, "prompts")

    async def _get_prompt(
        self, context: CallContext, server: str, name: str, arguments: dict[str, Any] | None = None
    ) -> Answer:
        if not isinstance(arguments, dict | None):
            raise InvalidInput("arguments is an object of names and texts")
        texts = {str(key): str(value) for key, value in (arguments or {}).items()}
        return await self._requests.get_prompt_for_code(str(server), str(name), texts, context)


OWN: dict[str, Any] = {
    "search_tools": Discovery._search_tools,
    "list_mcp_tools": Discovery._list_tools,
    "get_mcp_tool_details": Discovery._tool_details,
    "await_server": Discovery._await_server,
    "list_resources": Discovery._list_resources,
    "read_resource": Discovery._read_resource,
    "list_prompts": Discovery._list_prompts,
    "get_prompt": Discovery._get_prompt,
}


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search has brought, tools or servers, and out of how many."""

    items: list[dict[str, Any]]
    total: int
    is_list: bool
    """Nothing was looked for: they are the first by name, and not the best."""

    @property
    def is_of_several_servers(self) -> bool:
        """Whether tools of more than one server were found."""
        return len({item["server"] for item in self.items if "name" in item}) > 1

    def rest(self) -> str:
        """Say what was left out, and the way to it; nothing where nothing was."""
        shown = len(self.items)
        if shown >= self.total:
            return ""
        way = (
            f"a larger limit (up to {MAX_LIMIT}) or a server shows others, "
            "list_mcp_tools() in code names all"
        )
        if self.is_list:
            return f"and {self.total - shown:,} more: {way}"
        return f"the best {shown} of {self.total:,} tools: {way}"


def _value(value: Any, kind: str = "value", note: str = "") -> Answer:
    return Answer(json.dumps(value, separators=(",", ":")).encode(), kind, note)
