"""What a model reads about Divingbell: every word here costs every conversation its tokens.

The texts do not depend on what stands behind Divingbell, and not on the run, so that the caches
of clients and models keep them.
"""

import json

import mcp_types as types

NAME = "divingbell"
DEFAULT_SESSION = "default"
"""What a client calls the session that it has without asking for one."""

INSTRUCTIONS = """\
Work by writing Python for execute_python. The MCP tools behind this server are called from that \
code, so their definitions and results stay out of your context:
1. Find tools: search_tools here or in code, or look around: ls /servers, cat /servers/github/README
2. Call them: from servers.github import list_issues; issues = list_issues(owner="a", repo="b")
3. Loop, filter and join in code; print only what you need to read.
Variables, imports and files in /workspace persist between calls. No network except tools."""

EXECUTE = types.Tool(
    name="execute_python",
    description=(
        "Run Python in a sealed, persistent session (pandas, numpy, matplotlib). Returns what is "
        "printed, the last expression and plots. Top-level await works: "
        "await asyncio.gather(tool(1), tool(2)). A failing tool raises ToolError."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "session_id": {
                "type": "string",
                "description": "For several separate sessions; made when first used",
            },
            "timeout": {"type": "number", "description": "Seconds"},
        },
        "required": ["code"],
    },
)
SEARCH = types.Tool(
    name="search_tools",
    description=(
        "Find MCP tools that execute_python can call. Results are server.tool: "
        "from servers.server import tool. An empty query lists all."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What you want to do"},
            "detail_level": {
                "type": "string",
                "enum": ["name_only", "with_description", "full"],
                "default": "with_description",
                "description": "full has signature and schemas",
            },
            "limit": {"type": "integer", "default": 10},
            "server": {"type": "string"},
        },
        "required": ["query"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True),
)
LIST_SESSIONS = types.Tool(
    name="list_sessions",
    description="List your sessions.",
    input_schema={"type": "object", "properties": {}},
    annotations=types.ToolAnnotations(read_only_hint=True),
)
CLOSE_SESSION = types.Tool(
    name="close_session",
    description="End a session; its variables and files are lost.",
    input_schema={
        "type": "object",
        "properties": {"session_id": {"type": "string"}},
        "required": ["session_id"],
    },
)
TOOLS = (EXECUTE, SEARCH, LIST_SESSIONS, CLOSE_SESSION)
NAMES = frozenset(tool.name for tool in TOOLS)


def as_read() -> str:
    """Return all of it as a model reads it, to be counted."""
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS]
    return json.dumps(listed, separators=(",", ":")) + INSTRUCTIONS
