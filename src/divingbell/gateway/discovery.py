"""Questions that code puts to the gateway itself: what is there, and what does it say."""

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from divingbell import scale
from divingbell.calls import Answer, Visit
from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway import policy
from divingbell.gateway.behind import Behind
from divingbell.gateway.catalog import described
from divingbell.gateway.wrappers import module_source

if TYPE_CHECKING:
    from divingbell.gateway.gateway import Gateway


class Discovery:
    """Answers them. What a user may not call is not shown to that user."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway

    async def answer(self, visit: Visit, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Answer one of `OWN`.

        Raises:
            ToolFailed: it can't be answered, or the arguments are not right.
        """
        own = OWN[name]
        try:
            inspect.signature(own).bind(self, visit, **arguments)
            answer: Answer = await own(self, visit, **arguments)
            return answer
        except (InvalidInput, TypeError) as error:
            raise ToolFailed(f"{name}: {error}", "tool_arguments") from None

    async def _search_tools(
        self,
        visit: Visit,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
    ) -> Answer:
        await self._gateway.fleet.listed()
        found = await self._gateway.search(
            str(query), detail_level, limit, server, visit.user, visit.charge
        )
        return _value(found)

    async def _list_tools(self, visit: Visit, server: str | None = None) -> Answer:
        where = None if server is None else self._gateway.catalog.check_server(str(server))
        await self._gateway.fleet.listed(where)
        return _value([tool.full_name for tool in self._gateway.tools(where, visit.user)])

    async def _tool_details(self, visit: Visit, name: str) -> Answer:
        tool = await self._gateway.find(str(name), visit.user)
        if not self._gateway.may_see(tool, visit.user):
            decision = self._gateway.policy.decide(tool, {}, visit.user or "")
            raise policy.denied(tool, decision)
        [found] = await described([self._gateway.policy.without_bound(tool)], "full")
        return _value(found)

    async def _await_server(self, visit: Visit, server: str, tool: str | None = None) -> Answer:
        """For an import that did not find what it wanted: look again after this.

        A tool that is not for everyone has no file; whoever may call it is told here what would
        be in it.
        """
        name = self._gateway.catalog.check_server(str(server))
        await self._gateway.fleet.listed(name)
        await self._gateway.fleet.refreshed(name)
        if not self._gateway.catalog.tools(name):
            self._gateway.fleet.check(name)
        seen = [] if tool is None else self._gateway.tools(name, visit.user)
        source = next((module_source(each) for each in seen if each.function == tool), None)
        return _value({"generation": self._gateway.generation, "source": source})

    async def _list_resources(self, visit: Visit, server: str) -> Answer:
        found = await self._gateway.lists(str(server), visit, "resources", "templates")
        return await _listed(found)

    async def _read_resource(self, visit: Visit, server: str, uri: str) -> Answer:
        caller = Behind(self._gateway.policy, visit, f"{server}.read_resource")
        result = await self._gateway.read_resource(str(server), str(uri), visit, caller)
        return await _listed(result.contents, "resource")

    async def _list_prompts(self, visit: Visit, server: str) -> Answer:
        return await _listed(await self._gateway.lists(str(server), visit, "prompts"))

    async def _get_prompt(
        self, visit: Visit, server: str, name: str, arguments: dict[str, Any] | None = None
    ) -> Answer:
        caller = Behind(self._gateway.policy, visit, f"{server}.get_prompt")
        if not isinstance(arguments, dict | None):
            raise InvalidInput("arguments is an object of names and texts")
        words = {str(key): str(value) for key, value in (arguments or {}).items()}
        result = await self._gateway.get_prompt(str(server), str(name), words, visit, caller)
        return await scale.beside(_prompt, result)


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


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _prompt(result: Any) -> Answer:
    found = _plain(result)
    return _value({key: found[key] for key in ("description", "messages") if key in found})


async def _listed(items: Sequence[Any], kind: str = "value") -> Answer:
    return await scale.beside(lambda found: _value([_plain(item) for item in found], kind), items)


def _value(value: Any, kind: str = "value") -> Answer:
    return Answer(json.dumps(value, separators=(",", ":")).encode(), kind)
