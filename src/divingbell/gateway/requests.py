"""Requests to servers: of each kind one method, and all of them by the pipeline."""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from divingbell.gateway.callers import Caller, SessionCaller
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.pipeline import Pipeline, Request, Send
from divingbell.journal.events import CallKind
from divingbell.settings.policy import Policy
from divingbell.tool import Tool

if TYPE_CHECKING:
    import mcp_types

    from divingbell.gateway.upstream.upstream import Upstream

LISTS = {
    "resources": ("list_resources", "list_resources"),
    "templates": ("list_resources", "list_resource_templates"),
    "prompts": ("list_prompts", "list_prompts"),
}
"""For each list its name in rules, and the method of an Upstream."""

ListKind = Literal["resources", "templates", "prompts"]


class ServerRequests:
    """Everything that can be asked of a server."""

    def __init__(self, rules: Policy, pipeline: Pipeline) -> None:
        self._policy = rules
        self._pipeline = pipeline

    async def call_for_code(self, name: str, arguments: bytes, context: CallContext) -> Answer:
        """Call a tool for the code of a session, with the answer that goes back inside.

        Raises:
            ToolFailed: it was refused, or did not succeed.
        """
        request = Request("tool", name, context, "code", self._send_for_code, raw=arguments)
        await self._pipeline.run(request)
        assert request.answer is not None
        return request.answer

    def _send_for_code(
        self, upstream: "Upstream", request: Request, timeout: float
    ) -> Awaitable[Any]:
        tool = request.tool
        caller = SessionCaller(self._policy, request.context, tool.full_name)
        return upstream.call_tool(tool.name, request.arguments, timeout=timeout, caller=caller)

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
        await self._pipeline.run(request)
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
        await self._pipeline.run(request)
        return request.result
