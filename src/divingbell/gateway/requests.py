"""Requests to servers: of each kind one method, and all of them by the pipeline."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from divingbell.errors import ToolFailed, ToolFailure
from divingbell.gateway.callers import Caller, SessionCaller
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.pipeline import Form, Pipeline, Request
from divingbell.settings.policy import Policy
from divingbell.tool import Tool

if TYPE_CHECKING:
    import mcp_types

    from divingbell.gateway.upstream.base import UpstreamConnection

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
        request = Request("tool", name, context, self._send_for_code, raw=arguments)
        return await self._answer(request)

    def _send_for_code(
        self, upstream: "UpstreamConnection", request: Request, timeout: float
    ) -> Awaitable[Any]:
        tool = request.tool
        caller = SessionCaller(self._policy, request.context, tool.full_name)
        return upstream.call_tool(
            tool.name,
            request.arguments,
            timeout=timeout,
            caller=caller,
            departure=request.departure,
        )

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, caller: Caller
    ) -> "mcp_types.CallToolResult":
        """Call a tool for a client of ours, with the result as the server gave it.

        Raises:
            ToolFailed: it was refused, or the server could not be reached.
        """

        def send(
            upstream: "UpstreamConnection", request: Request, timeout: float
        ) -> Awaitable[Any]:
            return upstream.call_tool(
                request.tool.name,
                request.arguments,
                timeout=timeout,
                caller=caller,
                departure=request.departure,
            )

        request = Request("tool", tool.full_name, context, send, asked=arguments)
        await self._pipeline.run(request)
        result: mcp_types.CallToolResult = request.result
        return result

    async def refuse(
        self,
        name: str,
        arguments: Mapping[str, Any],
        context: CallContext,
        words: str,
        code: ToolFailure = "tool_unknown",
    ) -> NoReturn:
        """Refuse a call of a tool that is not there for a client: it counts, as any other does.

        Raises:
            ToolFailed: always.
        """

        async def refused() -> Answer:
            raise ToolFailed(words, code)

        await self._pipeline.run(Request("tool", name, context, asked=arguments), refused)
        raise AssertionError("it was not refused")

    async def read_resource(
        self, server: str, uri: str, context: CallContext, caller: Caller
    ) -> "mcp_types.ReadResourceResult":
        """Read a resource. Raises: as `call`."""
        result: mcp_types.ReadResourceResult
        result = await self._result(_resource(server, uri, context, caller))
        return result

    async def read_resource_for_code(self, server: str, uri: str, context: CallContext) -> Answer:
        """Read a resource, for code. Raises: as `call`."""
        caller = SessionCaller(self._policy, context, f"{server}.read_resource")
        form = Form(lambda result: _dumped(result)["contents"], "resource")
        return await self._answer(_resource(server, uri, context, caller, form))

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str],
        context: CallContext,
        caller: Caller,
    ) -> "mcp_types.GetPromptResult":
        """Get a prompt. Raises: as `call`."""
        result: mcp_types.GetPromptResult
        result = await self._result(_prompt(server, name, arguments, context, caller))
        return result

    async def get_prompt_for_code(
        self, server: str, name: str, arguments: Mapping[str, str], context: CallContext
    ) -> Answer:
        """Get a prompt, for code. Raises: as `call`."""
        caller = SessionCaller(self._policy, context, f"{server}.get_prompt")
        form = Form(_description_and_messages, "value")
        return await self._answer(_prompt(server, name, arguments, context, caller, form))

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
        said: Any = argument.value
        if argument.name in arguments:
            said = [said, arguments.pop(argument.name)]  # where a name comes twice, both are sent
        arguments[argument.name] = said
        count = len(arguments)

        def send(
            upstream: "UpstreamConnection", request: Request, timeout: float
        ) -> Awaitable[Any]:
            others = dict(request.arguments["arguments"])
            if len(others) != count:
                raise ToolFailed("two arguments have the same name: rename one", "tool_arguments")
            # By its place, which is the last: the border may know it by another name.
            name, value = others.popitem()
            if isinstance(value, list):
                value, others[name] = value
            return upstream.complete(
                ref.model_copy(update={each: request.arguments[each] for each in named}),
                argument.model_copy(update={"name": name, "value": value}),
                None if known is None else others,
            )

        request = Request("completion", f"{server}.complete", context, send, asked=given)
        result: mcp_types.CompleteResult = await self._result(request)
        return result

    async def lists(self, server: str, context: CallContext, *kinds: ListKind) -> list[Any]:
        """What a server has of these kinds, which all have one name in rules. Raises: as `call`."""
        result: list[Any] = await self._result(_lists(server, context, kinds))
        return result

    async def lists_for_code(self, server: str, context: CallContext, *kinds: ListKind) -> Answer:
        """The same for code. Raises: as `call`."""
        form = Form(lambda items: [_dumped(item) for item in items], "value")
        return await self._answer(_lists(server, context, kinds, form))

    async def _result(self, request: Request) -> Any:
        await self._pipeline.run(request)
        return request.result

    async def _answer(self, request: Request) -> Answer:
        await self._pipeline.run(request)
        assert request.answer is not None
        return request.answer


def _resource(
    server: str, uri: str, context: CallContext, caller: Caller, form: Form | None = None
) -> Request:
    def send(upstream: "UpstreamConnection", request: Request, timeout: float) -> Awaitable[Any]:
        return upstream.read_resource(request.arguments["uri"], caller, timeout=timeout)

    name = f"{server}.read_resource"
    return Request("resource", name, context, send, asked={"uri": uri}, form=form)


def _prompt(
    server: str,
    name: str,
    arguments: Mapping[str, str],
    context: CallContext,
    caller: Caller,
    form: Form | None = None,
) -> Request:
    def send(upstream: "UpstreamConnection", request: Request, timeout: float) -> Awaitable[Any]:
        given = request.arguments
        return upstream.get_prompt(given["name"], given["arguments"], caller, timeout=timeout)

    given = {"name": name, "arguments": dict(arguments)}
    return Request("prompt", f"{server}.get_prompt", context, send, asked=given, form=form)


def _lists(
    server: str, context: CallContext, kinds: Sequence[ListKind], form: Form | None = None
) -> Request:
    async def send(upstream: "UpstreamConnection", request: Request, timeout: float) -> list[Any]:
        found = [await getattr(upstream, LISTS[kind][1])() for kind in kinds]
        return [item for items in found for item in items]

    return Request("list", f"{server}.{LISTS[kinds[0]][0]}", context, send, form=form)


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _description_and_messages(result: Any) -> dict[str, Any]:
    found = _dumped(result)
    return {key: found[key] for key in ("description", "messages") if key in found}
