"""The door of a helper's session: some of the tools, on the account of the session that asked.

What the helper may not call is refused here, whatever its code does. Files under /servers show all
tools that are for everyone, and are no authority.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from divingbell.errors import ToolFailure
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.door import OpenDoor, parsed
from divingbell.gateway.gateway import DELEGATE, Gateway
from divingbell.settings.patterns import Patterns
from divingbell.tool import Tool

PASSED = ("await_server", "search_skills", "load_skill", DELEGATE)
"""Questions to the gateway that pass as they are. The last one is answered only where helpers may
have helpers."""
LISTS = ("search_tools", "list_mcp_tools")
OF_SERVERS = ("list_resources", "read_resource", "list_prompts", "get_prompt")
DETAILS = "get_mcp_tool_details"
MOST_SEARCHED = 100
MAX_NAME = 200


class HelperDoor(OpenDoor):
    """The gateway, with a part of its tools."""

    def __init__(
        self,
        gateway: Gateway,
        tools: tuple[str, ...],
        payer: tuple[str, int],
        outer: "HelperDoor | None" = None,
    ) -> None:
        """`tools` are names and patterns. `payer` is the session, by its key, and the cell on whose
        account calls are made. `outer` is the door of a helper that this one is the helper of."""
        super().__init__(gateway)
        self._wanted = Patterns(tools) if tools else None
        self._outer = outer
        self._payer: tuple[str, int] = payer if outer is None else outer._payer

    def allows(self, name: str) -> bool:
        """Whether `server.tool` may be called."""
        if self._wanted is None or not self._wanted.matches(name):
            return False
        return self._outer is None or self._outer.allows(name)

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        # To delegate brings nobody another budget.
        context.payer = self._payer
        self._gateway.policy.check_arguments(name, arguments)
        if name in PASSED:
            return await super().answer(context, name, arguments)
        if name in LISTS:
            return await self._list(context, name, arguments)
        if name in OF_SERVERS:
            server = (await parsed(name, arguments)).get("server")
            called = f"{self._gateway.catalog.check_server(str(server))}.{name}"
            await self._check(context, called)
        elif name == DETAILS:
            wanted = (await parsed(name, arguments)).get("name")
            await self._check(context, (await self._found(str(wanted), context)).full_name)
        else:
            # By the name that was compared: another one might be found for what was written.
            name = (await self._found(name, context)).full_name
            await self._check(context, name)
        return await super().answer(context, name, arguments)

    async def _check(self, context: CallContext, name: str) -> None:
        if not self.allows(name):
            words = f"{name[:MAX_NAME]} is not among the tools that this helper was given"
            await self._refuse(context, name, words, "tool_denied")

    async def _refuse(
        self, context: CallContext, name: str, words: str, code: ToolFailure
    ) -> NoReturn:
        await self._gateway.requests.refuse(name[:MAX_NAME], {}, context, words, code)

    async def _found(self, name: str, context: CallContext) -> Tool:
        """Return the tool of a name. One that is not there is refused, and counts."""
        catalog, fleet = self._gateway.catalog, self._gateway.fleet
        server = catalog.server_in(name)
        if server is not None and fleet.is_awaited(server):
            await fleet.wait_for_tools(server)
        tool = catalog.known(name)
        if tool is None:
            words = f"there is no tool {name[:MAX_NAME]!r}"
            await self._refuse(context, name, words, "tool_unknown")
        return tool

    async def _list(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer with those tools only that may be called."""
        given = dict(await parsed(name, arguments))
        limit = given.get("limit", 10)
        if name == "search_tools":
            given["limit"] = MOST_SEARCHED
        found = await super().answer(context, name, json.dumps(given).encode())
        items = [item for item in json.loads(found.body) if self._is_listed(item)]
        if name == "search_tools" and isinstance(limit, int):
            items = items[: max(limit, 0)]
        return Answer(json.dumps(items).encode(), found.kind)

    def _is_listed(self, item: Any) -> bool:
        if not isinstance(item, Mapping):
            return self.allows(str(item))
        return "name" not in item or self.allows(str(item["name"]))
