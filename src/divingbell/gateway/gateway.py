"""The door: every call of a tool passes here, and nowhere else.

Is there such a tool → may it be called → do the arguments fit → is there room in the budget →
does a person say yes → upstream → is the result what was promised → back.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from divingbell import scale
from divingbell.calls import Answer, Visit
from divingbell.errors import ToolFailed
from divingbell.gateway import approvals, policy, schema, wrappers
from divingbell.gateway.approvals import Approval, Approvals, Approver, ElicitingApprover
from divingbell.gateway.behind import Behind
from divingbell.gateway.catalog import Catalog, described
from divingbell.gateway.discovery import OWN, Discovery
from divingbell.gateway.fleet import Fleet, MakeUpstream, OnChange, ServerState
from divingbell.gateway.folder import Folder
from divingbell.gateway.learning import Learner
from divingbell.gateway.meter import Meter
from divingbell.gateway.pins import Pins
from divingbell.gateway.policy import Policy
from divingbell.gateway.problem import Problem
from divingbell.gateway.search import Index
from divingbell.gateway.servers import Entry
from divingbell.gateway.tool import Tool
from divingbell.models import Event, Result
from divingbell.telemetry.books import Books
from divingbell.telemetry.ledger import Ledger
from divingbell.telemetry.store import Store
from divingbell_inside import frames

if TYPE_CHECKING:
    import mcp_types
    import pydantic

    from divingbell.gateway.caller import Caller
    from divingbell.gateway.meaning import Meaning
    from divingbell.gateway.upstream import Upstream

log = logging.getLogger("divingbell.gateway")

MAX_PROBLEMS = 3
MAX_NAME = 200
"""Characters of what was called, in a message."""
NOBODY = ""
"""The user of a session that has none, as rules see it."""


class Gateway:
    """All upstream servers, the rules, and the way through."""

    def __init__(
        self,
        rules: Policy,
        folder: Folder,
        pins: Pins,
        make_upstream: MakeUpstream,
        on_approval: Approver | None = None,
        store: Store | None = None,
        load_meaning: "Callable[[], Meaning] | None" = None,
    ) -> None:
        self.policy = rules
        self.calls_at_once = rules.calls_at_once
        index = Index()
        self.catalog = Catalog(folder, index, self._shown)
        self._learner = Learner(index, load_meaning) if load_meaning else None
        self.fleet = Fleet(self.catalog, make_upstream)
        self.fleet.on_change(self._tools_changed)
        self.books = Books(store, self.catalog.tools)
        self._discovery = Discovery(self)
        self._pins = pins
        self._on_approval = on_approval
        self._meter = Meter(rules)
        self._approvals = Approvals(rules.approval_timeout)
        self._saving: asyncio.Task[None] | None = None

    # Servers come and go while it runs: see divingbell.gateway.fleet.

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
        if self._saving is not None:
            await asyncio.wait([self._saving])
        if self._pins.unsaved:
            await asyncio.to_thread(self._pins.save)

    def _tools_changed(self, kind: str, server: str) -> None:
        if kind == "tools":
            self.books.listed(self.catalog.tools(server))
            if self._learner is not None:
                self._learner.learn(self.catalog.tools())

    def _shown(self, tool: Tool) -> Tool | None:
        """The tool as code may see it; None if nobody may call it, whatever the arguments."""
        named = {user.removeprefix("!") for rule in self.policy.rules for user in rule.users}
        if any(self.policy.visible(tool, user) for user in {NOBODY, *named}):
            return self.policy.without_bound(tool)
        return None

    # What code may ask for (divingbell.calls.Door)

    @property
    def generation(self) -> int:
        return self.catalog.generation

    def cost(self, arguments: bytes) -> int:
        if len(arguments) > self.policy.max_arguments:
            return 0  # they will not be parsed
        return scale.weight_of(arguments, scale.MAX_ARGUMENTS) * scale.UNIT

    async def answer(self, visit: Visit, name: str, arguments: bytes) -> Answer:
        if name not in ("read_resource", "get_prompt"):
            # Whatever is asked counts: also what is not there costs the host some work.
            await self._reserve(visit)
        self.policy.check_arguments(name[:MAX_NAME], arguments)
        if name in OWN:
            answer = await self._discovery.answer(visit, name, _parsed(name, arguments))
            self.policy.check_result_size(name, len(answer.body))
            return answer
        tool = await self.find(name)
        given = _parsed(name, arguments)
        if self._problems(tool, given) and await self.fleet.refreshed(tool.server):
            tool = await self.find(name)  # the server has changed since its list was kept
        caller = Behind(self.policy, visit, tool.full_name)
        result = await self._call(tool, given, visit, caller)
        return await scale.beside(lambda found: self._packed(tool, found), result)

    def _packed(self, tool: Tool, result: "mcp_types.CallToolResult") -> Answer:
        from divingbell.gateway import outcome

        wire = outcome.wire_of(tool, result)
        body = json.dumps(wire, separators=(",", ":")).encode()
        self.policy.check_result_size(tool.full_name, len(body))
        return Answer(body, "tool")

    async def find(self, name: str) -> Tool:
        """See `Catalog.find`; a server that is just starting, or is broken, is heard first.

        Raises:
            ToolFailed: there is no such tool, or its server is not there.
        """
        server = self.catalog.server_in(name)
        if server is not None:
            await self.fleet.listed(server)
        try:
            return self.catalog.find(name)
        except ToolFailed:
            if server is None:
                raise
            await self.fleet.refreshed(server)
            self.fleet.check(server)
            return self.catalog.find(name)

    async def forget(self, session: str) -> None:
        await self._meter.forget(session)
        self._approvals.forget(session)
        self.books.forget(session)
        await self.fleet.forget(session)

    def end_run(self, session: str) -> None:
        self._approvals.end_run(session)

    async def balance(
        self, session: str, user: str | None, code: str, result: Result
    ) -> Ledger | None:
        """The ledger of an execution; none where there are no tools to save anything on."""
        if not self.fleet:
            return None
        return await self.books.balance(session, user, code, result)

    async def search(
        self,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
        user: str | None = None,
    ) -> list[dict[str, Any]]:
        """Find tools, the best first, described as far as was asked for.

        Raises: as `Catalog.search`.
        """
        found = self.catalog.search(
            query, detail_level, limit, server, lambda tool: self.may_see(tool, user)
        )
        return await described(found, detail_level)

    def tools(self, server: str | None = None, user: str | None = None) -> list[Tool]:
        """The tools that this user may see."""
        return [tool for tool in self.catalog.tools(server) if self.may_see(tool, user)]

    def may_ask(self, server: str, name: str, user: str | None) -> bool:
        """Whether the rules let this user ask a server for a list of its resources or prompts."""
        tool = self.pseudo_tool(server, name)
        return self.policy.decide(tool, {}, user or NOBODY).action != "deny"

    def may_see(self, tool: Tool, user: str | None) -> bool:
        """Whether there are arguments with which this user may call the tool."""
        return self.policy.visible(tool, user or NOBODY)

    # Through the door

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], visit: Visit, caller: "Caller"
    ) -> "mcp_types.CallToolResult":
        """Call a tool for a client of ours, with the result as the server gave it.

        Raises:
            ToolFailed: it was refused, or the server could not be reached.
        """
        await self._reserve(visit)
        found = self.catalog.find(tool.full_name)
        self.policy.check_arguments(found.full_name, json.dumps(arguments).encode())
        result = await self._call(found, arguments, visit, caller)
        await self._check_result(found, result)
        return result

    async def read_resource(
        self, server: str, uri: str, visit: Visit, caller: "Caller"
    ) -> "mcp_types.ReadResourceResult":
        """Read a resource. Raises: as `call`."""
        await self._reserve(visit)
        tool = self.pseudo_tool(server, "read_resource")
        upstream, _ = await self.admit(tool, {"uri": uri}, visit)
        visit.sent = True
        result = await upstream.read_resource(uri, caller, timeout=self._timeout(tool))
        await self._check_result(tool, result)
        return result

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str],
        visit: Visit,
        caller: "Caller",
    ) -> "mcp_types.GetPromptResult":
        """Get a prompt. Raises: as `call`."""
        await self._reserve(visit)
        tool = self.pseudo_tool(server, "get_prompt")
        asked = {"name": name, "arguments": dict(arguments)}
        upstream, _ = await self.admit(tool, asked, visit)
        visit.sent = True
        result = await upstream.get_prompt(name, arguments, caller, timeout=self._timeout(tool))
        await self._check_result(tool, result)
        return result

    async def _check_result(self, tool: Tool, result: "pydantic.BaseModel") -> None:
        size = await scale.beside(lambda found: len(found.model_dump_json(by_alias=True)), result)
        self.policy.check_result_size(tool.full_name, size)

    async def _reserve(self, visit: Visit) -> None:
        await self._meter.reserve(visit.key, visit.user or NOBODY, visit.run)

    def _timeout(self, tool: Tool) -> float:
        entry = self.fleet.server(tool.server)
        return (entry.timeout if entry else None) or self.policy.tool_timeout

    async def _call(
        self, tool: Tool, given: Mapping[str, Any], visit: Visit, caller: "Caller"
    ) -> "mcp_types.CallToolResult":
        timeout = self._timeout(tool)
        upstream, arguments = await self.admit(tool, given, visit)
        visit.sent = True
        result = await upstream.call_tool(tool.name, arguments, timeout=timeout, caller=caller)
        shown = await scale.beside(_shown, result)
        images = sum(block.type == "image" for block in result.content)
        accountant = self.books.of(visit.key)
        accountant.note_call(tool.full_name, json.dumps(given), shown, images=images)
        return result

    async def admit(
        self, tool: Tool, given: Mapping[str, Any], visit: Visit
    ) -> tuple["Upstream", dict[str, Any]]:
        """Let a call pass; return the way to its server, and the arguments with those we set.

        Raises:
            ToolFailed: it may not pass.
        """
        user = visit.user or NOBODY
        upstream = self.fleet.upstream(tool.server, visit.key)
        arguments = self.policy.bind(tool, given, user, visit.session)
        decision = self.policy.decide(tool, arguments, user, visit.session)
        if decision.action == "deny":
            raise policy.denied(tool, decision)
        self._check_arguments(tool, given)
        must_ask = decision.action == "ask"
        reason = decision.reason
        if self.policy.pin:
            review = self._pins.review(tool, decision.action)
            if review == "warn":
                words = f"{tool.full_name}: its definition has changed since it was first seen"
                log.warning("%s", words)
                visit.tell(Event("log", text=words, tool=tool.full_name))
            elif review == "ask":
                must_ask = True
                reason = f"its definition has changed. {reason}".strip()
            self._save_pins()
        if must_ask:
            await self._approve(tool, arguments, reason, decision.rule, visit)
        return upstream, arguments

    async def _approve(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        reason: str,
        rule: int | None,
        visit: Visit,
    ) -> None:
        approver = ElicitingApprover(visit.asker) if visit.asker else self._on_approval
        question = Approval(
            tool=tool.full_name,
            arguments=approvals.preview(arguments),
            reason=reason,
            session=visit.key,
            user=visit.user or NOBODY,
            rule=rule,
            definition=self._pins.digest(tool),
        )
        listed = self.catalog.lists(tool)
        await self._approvals.ask(question, approver)
        if listed and not self.catalog.lists(tool):
            raise ToolFailed(
                f"{tool.full_name} was changed by its server while the person was asked: "
                "look at it again, then call it again",
                "tool_denied",
            )
        self._pins.approve(tool)
        self._save_pins()

    def _save_pins(self) -> None:
        if self._pins.unsaved and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(asyncio.to_thread(self._pins.save))

    def _problems(self, tool: Tool, given: Mapping[str, Any]) -> list[Problem]:
        known = self.policy.without_bound(tool).input_schema or {}
        return schema.check(given, known) or schema.unknown_names(given, known)

    def _check_arguments(self, tool: Tool, given: Mapping[str, Any]) -> None:
        problems = self._problems(tool, given)
        if problems:
            seen = self.policy.without_bound(tool)
            words = "; ".join(str(problem) for problem in problems[:MAX_PROBLEMS])
            raise ToolFailed(
                f"{tool.full_name}: {words}. It is called as {wrappers.signature(seen)}",
                "tool_arguments",
            )

    def pseudo_tool(self, server: str, name: str) -> Tool:
        """Reading resources and prompts passes the same rules, as `server.read_resource` …"""
        server = self.catalog.check_server(str(server))
        return Tool(server, name, server, name)


def _shown(result: "mcp_types.CallToolResult") -> str:
    """What a client would have shown to its model; the books count it."""
    texts = "\n".join(block.text for block in result.content if block.type == "text")
    if not texts and result.structured_content is not None:
        return json.dumps(result.structured_content)
    return texts


def _parsed(name: str, arguments: bytes) -> dict[str, Any]:
    try:
        return frames.parse(arguments)
    except frames.FrameError as error:
        words = str(error).removeprefix("the header ")
        raise ToolFailed(f"{name[:MAX_NAME]}: the arguments: {words}", "tool_arguments") from None
