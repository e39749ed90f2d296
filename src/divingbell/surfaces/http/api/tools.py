"""Tools of MCP servers: searched as a model sees them, and described."""

from typing import Annotated, Any, Literal
from urllib.parse import unquote

from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.gateway.context import CallContext
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import JSON, Answer, as_json
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.wire import MAX_QUERY, Given, LongPage, Nothing, Told
from divingbell.text import visible

MAX_REASON = 500


class Search(Given):
    """What is searched for, and how much is told of each finding."""

    query: Annotated[str, Meta(max_length=MAX_QUERY)] = ""
    detail_level: Literal["name_only", "with_description", "full", "servers"] = "with_description"
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    server: Annotated[str, Meta(max_length=200)] | None = None


class FindingsTold(Told):
    """What a search has brought, out of how many."""

    items: list[Any]
    total: int


class ServerTold(Told):
    """An MCP server."""

    name: str
    state: str
    tools: int
    reason: str


class ServersTold(Told):
    """The MCP servers that code can call."""

    items: list[ServerTold]
    next: str | None


async def servers(call: Call, given: LongPage) -> ASGIApp:
    """List the MCP servers, and how they are doing."""
    found = call.service.bell.gateway.servers()
    part, after = pages.page(found, given, lambda each: each.name)
    items = [
        ServerTold(
            name=each.name,
            state=each.state,
            tools=each.tools,
            reason=visible(each.reason, MAX_REASON),
        )
        for each in part
    ]
    return as_json(ServersTold(items=items, next=after))


async def search(call: Call, given: Search) -> ASGIApp:
    """Search the tools that the user may call."""
    find = call.service.bell.gateway.discovery.search
    user = call.visitor.user
    found = await find(given.query, given.detail_level, given.limit, given.server, user)
    return as_json(FindingsTold(items=list(found.items), total=found.total))


async def details(call: Call, given: Nothing) -> ASGIApp:
    """Describe one tool in full."""
    name = f"{unquote(call.parameter('server'))}.{unquote(call.parameter('tool'))}"
    context = CallContext(call.visitor.principal(), "", "")
    discovery = call.service.bell.gateway.discovery
    answer = await discovery.answer("get_mcp_tool_details", context, {"name": name})
    return Answer(answer.body, media_type=JSON)


OPERATIONS = (
    Operation("GET", "/mcp/servers", "read", servers, query=LongPage, answers=ServersTold),
    Operation("GET", "/mcp/tools/search", "read", search, query=Search, answers=FindingsTold),
    Operation("GET", "/mcp/tools/{server}/{tool}", "read", details, answers=dict[str, Any]),
)
