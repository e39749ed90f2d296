"""A server with all that the conformance suite calls: `python -m tests.servers.conformance`.

Over stdio, or with `--http PORT` over streamable HTTP (port 0 takes a free one and prints it). It
speaks both eras of the protocol, and asks its client in the way of the era that it is spoken to.
"""

import asyncio
import json
import socket
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

# Logging, sampling and roots are deprecated, and the suite asks for them all the same.
warnings.simplefilter("ignore", MCPDeprecationWarning)

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE = 0.05
"""Between two messages of one tool: the suite wants them apart."""

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, types.CallToolRequestParams], Awaitable[types.CallToolResult]]
REPLIES: dict[str, type[Any]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}

bus = InMemorySubscriptionBus()
changes = 0


class InputNeededError(Exception):
    """Ends a round of the 2026 era: the client answers and calls again."""

    def __init__(self, requests: types.InputRequests, state: str | None) -> None:
        super().__init__("input is needed")
        self.result = types.InputRequiredResult(input_requests=requests, request_state=state)


# Asking the client


async def ask(
    ctx: Context,
    params: types.CallToolRequestParams | types.GetPromptRequestParams,
    requests: types.InputRequests,
    state: str | None = None,
) -> dict[str, Any]:
    """Return the client's answer to each request, in both eras."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        return {
            key: await ctx.session.send_request(request, REPLIES[request.method], metadata=related)
            for key, request in requests.items()
        }
    given = params.input_responses or {}
    if not all(isinstance(given.get(key), REPLIES[ask.method]) for key, ask in requests.items()):
        raise InputNeededError(requests, state)
    return dict(given)


def form(message: str, /, **properties: Any) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sample(prompt: str, tokens: int = 100) -> types.CreateMessageRequest:
    content = types.TextContent(text=prompt)
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)], max_tokens=tokens
        )
    )


def text(*parts: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=part) for part in parts])


def told(result: types.ElicitResult) -> types.CallToolResult:
    return text(f"Elicitation completed: action={result.action}, content={result.content}")


# The tools

STRING = {"type": "string"}


async def simple_text(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return text("This is a simple text response for testing.")


async def image(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.ImageContent(data=PNG, mime_type="image/png")])


async def audio(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.AudioContent(data=WAV, mime_type="audio/wav")])


def embedded(uri: str, kind: str, content: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=kind, text=content)
    )


async def embedded_resource(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult:
    content = "This is an embedded resource content."
    return types.CallToolResult(
        content=[embedded("test://embedded-resource", "text/plain", content)]
    )


async def mixed(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    data = '{"test":"data","value":123}'
    return types.CallToolResult(
        content=[
            types.TextContent(text="Multiple content types test:"),
            types.ImageContent(data=PNG, mime_type="image/png"),
            embedded("test://mixed-content-resource", "application/json", data),
        ]
    )


async def with_logging(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message(
            "info", line, logger="conformance", related_request_id=ctx.request_id
        )
        await asyncio.sleep(PAUSE)
    return text("Three lines were logged.")


async def with_progress(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    for part in (0, 50, 100):
        await ctx.session.report_progress(part, 100, f"{part} of 100")
        await asyncio.sleep(PAUSE)
    return text("Three steps were reported.")


async def failing(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    message = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def sampling(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    prompt = str((params.arguments or {}).get("prompt", ""))
    answers = await ask(ctx, params, {"answer": sample(prompt)})
    return text(f"LLM response: {answers['answer'].content.text}")


async def elicitation(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    message = str((params.arguments or {}).get("message", ""))
    asked = {"answer": form(message, username=STRING, email=STRING)}
    return told((await ask(ctx, params, asked))["answer"])


async def defaults(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    asked = form(
        "Please provide user information",
        name=STRING | {"default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status=STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return told((await ask(ctx, params, {"answer": asked}))["answer"])


def titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{i}", "title": title} for i, title in enumerate(titles, 1)]


async def enums(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    options = ["option1", "option2", "option3"]
    asked = form(
        "Please select values",
        untitledSingle=STRING | {"enum": options},
        titledSingle=STRING | {"oneOf": titled("First Option", "Second Option")},
        legacyEnum=STRING | {"enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        untitledMulti={"type": "array", "items": STRING | {"enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled("First", "Second")}},
    )
    return told((await ask(ctx, params, {"answer": asked}))["answer"])


async def ask_name(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    answers = await ask(ctx, params, {"user_name": form("What is your name?", name=STRING)})
    return text(f"Hello, {(answers['user_name'].content or {}).get('name')}!")


async def ask_model(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    asked = {"capital_question": sample("What is the capital of France?")}
    return text((await ask(ctx, params, asked))["capital_question"].content.text)


async def ask_roots(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    asked: types.InputRequests = {"client_roots": types.ListRootsRequest()}
    roots = (await ask(ctx, params, asked))["client_roots"].roots
    return text(", ".join(str(root.uri) for root in roots))


async def ask_with_state(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    asked = {"confirm": form("Please confirm", ok={"type": "boolean"})}
    await ask(ctx, params, asked, state="confirming")
    return text("state-ok" if params.request_state == "confirming" else "the state is lost")


async def ask_many(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    asked: types.InputRequests = {
        "user_name": form("What is your name?", name=STRING),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    answers = await ask(ctx, params, asked, state="many")
    return text(f"{answers['greeting'].content.text} {answers['user_name'].content}")


async def ask_twice(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.request_state != "second":
        await ask(ctx, params, {"step1": form("Step 1: What is your name?", name=STRING)}, "first")
    again = {"step2": form("Step 2: What is your favorite color?", color=STRING)}
    answers = await ask(ctx, params, again, "second")
    return text(f"Your colour is {answers['step2'].content}")


async def ask_what_it_can(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult:
    able = ctx.session.client_capabilities or types.ClientCapabilities()
    asked: types.InputRequests = {}
    if able.elicitation is not None:
        asked["user_name"] = form("What is your name?", name=STRING)
    if able.sampling is not None:
        asked["greeting"] = sample("Generate a greeting")
    await ask(ctx, params, asked)
    return text("All answered.")


async def needs_sampling(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        missing = types.ClientCapabilities(sampling=types.SamplingCapability())
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=missing)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs a client that samples",
            data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
    return await ask_model(ctx, params)


async def change_tools(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    await changed(ctx, ToolsListChanged())
    return text("The tools are others now.")


async def change_prompts(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    await changed(ctx, PromptsListChanged())
    return text("The prompts are others now.")


async def changed(ctx: Context, event: ToolsListChanged | PromptsListChanged) -> None:
    global changes
    changes += isinstance(event, ToolsListChanged)
    await bus.publish(event)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        if isinstance(event, ToolsListChanged):
            await ctx.session.send_tool_list_changed()
        else:
            await ctx.session.send_prompt_list_changed()


# Keywords that a server in between must not lose.
RICH_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": STRING | {"enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS: Mapping[str, tuple[Handler, Mapping[str, Any]]] = {
    "test_simple_text": (simple_text, {}),
    "test_image_content": (image, {}),
    "test_audio_content": (audio, {}),
    "test_embedded_resource": (embedded_resource, {}),
    "test_multiple_content_types": (mixed, {}),
    "test_tool_with_logging": (with_logging, {}),
    "test_logging_tool": (with_logging, {}),
    "test_tool_with_progress": (with_progress, {}),
    "test_error_handling": (failing, {}),
    "test_sampling": (sampling, {"prompt": STRING}),
    "test_elicitation": (elicitation, {"message": STRING}),
    "test_elicitation_sep1034_defaults": (defaults, {}),
    "test_elicitation_sep1330_enums": (enums, {}),
    "test_streaming_elicitation": (ask_name, {}),
    "test_input_required_result_elicitation": (ask_name, {}),
    "test_input_required_result_sampling": (ask_model, {}),
    "test_input_required_result_list_roots": (ask_roots, {}),
    "test_input_required_result_request_state": (ask_with_state, {}),
    "test_input_required_result_tampered_state": (ask_with_state, {}),
    "test_input_required_result_multiple_inputs": (ask_many, {}),
    "test_input_required_result_multi_round": (ask_twice, {}),
    "test_input_required_result_capabilities": (ask_what_it_can, {}),
    "test_missing_capability": (needs_sampling, {}),
    "test_trigger_tool_change": (change_tools, {}),
    "test_trigger_prompt_change": (change_prompts, {}),
    "test_x_mcp_header": (simple_text, {"region": STRING | {"x-mcp-header": "Region"}}),
    "json_schema_2020_12_tool": (simple_text, RICH_SCHEMA),
}


def definition(name: str, properties: Mapping[str, Any]) -> types.Tool:
    schema = dict(properties)
    if "$schema" not in schema:
        schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.Tool(name=name, description=f"The suite calls {name}.", input_schema=schema)


async def list_tools(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    listed = [definition(name, properties) for name, (_, properties) in TOOLS.items()]
    # It comes and goes: a list that only grew would be another one for each scenario.
    added = [definition("test_added_tool", {})] if changes % 2 else []
    return types.ListToolsResult(tools=[*listed, *added])


async def call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    handler, _ = TOOLS.get(params.name, (None, None))
    if handler is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")
    try:
        return await handler(ctx, params)
    except InputNeededError as needed:
        return needed.result


# Resources

RESOURCES: Mapping[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PNG
    ),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watch me."
    ),
}


async def list_resources(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    listed = [
        types.Resource(uri=uri, name=uri.partition("//")[2], mime_type=content.mime_type)
        for uri, content in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=listed)


async def list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri in RESOURCES:
        return types.ReadResourceResult(contents=[RESOURCES[uri]])
    if uri.startswith("test://template/") and uri.endswith("/data"):
        name = uri.removeprefix("test://template/").removesuffix("/data")
        data = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
        return types.ReadResourceResult(contents=[content])
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def watch(
    ctx: Context, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
) -> types.EmptyResult:
    return types.EmptyResult()


# Prompts


def argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=f"The {name}.", required=True)


PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=name, description=f"{name}.", arguments=list(map(argument, names)))
            for name, names in PROMPTS.items()
        ]
    )


def said(*contents: types.ContentBlock) -> types.GetPromptResult:
    messages = [types.PromptMessage(role="user", content=content) for content in contents]
    return types.GetPromptResult(messages=messages)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return said(types.TextContent(text="This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            line = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            return said(types.TextContent(text=line))
        case "test_prompt_with_embedded_resource":
            content = "Embedded resource content for testing."
            return said(
                embedded(given["resourceUri"], "text/plain", content),
                types.TextContent(text="Please process the embedded resource above."),
            )
        case "test_prompt_with_image":
            return said(
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.TextContent(text="Please analyze the image above."),
            )
        case "test_input_required_result_prompt":
            asked = {"user_context": form("What context should it use?", context=STRING)}
            try:
                answers = await ask(ctx, params, asked)
            except InputNeededError as needed:
                return needed.result
            return said(types.TextContent(text=f"Context: {answers['user_context'].content}"))
    raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")


async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [f"{params.argument.value}-{end}" for end in ("one", "two")]
    return types.CompleteResult(completion=types.Completion(values=values, total=2, has_more=False))


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def build() -> Server[Any]:
    """Return the server."""
    fresh = CacheHint(ttl_ms=0, scope="private")
    server: Server[Any] = Server(
        "conformance",
        version="1.0",
        cache_hints=dict.fromkeys(
            (
                "tools/list",
                "prompts/list",
                "resources/list",
                "resources/templates/list",
                "resources/read",
            ),
            fresh,
        ),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=watch,
        on_unsubscribe_resource=watch,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    security = RequestStateSecurity.ephemeral()
    server.middleware.append(RequestStateBoundary(security, default_audience="conformance"))
    return server


async def over_stdio() -> None:
    server = build()
    options = server.create_initialization_options(
        NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    )
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, options)


async def over_http(port: int) -> None:
    app = build().streamable_http_app()
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    listener = config.bind_socket()
    # Else each answer in two pieces waits 40 ms: asyncio does not know this socket for TCP.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with_http = sys.argv[1:2] == ["--http"]
    asyncio.run(over_http(int(sys.argv[2])) if with_http else over_stdio())
