"""All servers whose tool lists are known, at one port: `list_server.py PORT`.

Each is an MCP server of its own at /<name>/mcp, lists the real definitions, and answers every
call with a short text, or with the smallest value that fits where a structured one is promised.
"""

import json
import sys
from typing import Any

import mcp_types as types
import sample
import uvicorn
from hosted import application
from lists import tool_lists
from mcp.server.lowlevel import Server

ANSWER = "It is done."


def serve(name: str, definitions: list[dict[str, Any]]) -> Server[Any]:
    """A server that lists these definitions."""
    # Nine of the schemas do not say that arguments are an object: the SDK does not serve those.
    tools = [
        types.Tool.model_validate(
            {**definition, "inputSchema": {"type": "object", **definition["inputSchema"]}}
        )
        for definition in definitions
    ]
    promised = {tool.name: tool.output_schema for tool in tools}

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        schema = promised[params.name]
        if schema is None:
            return types.CallToolResult(content=[types.TextContent(text=ANSWER)])
        value = sample.of(schema)
        content = [types.TextContent(text=json.dumps(value))]
        return types.CallToolResult(content=content, structured_content=value)

    return Server(name, version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def main() -> None:
    port = int(sys.argv[1])
    servers = {name: serve(name, definitions) for name, definitions in tool_lists().items()}
    uvicorn.run(application(servers), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
