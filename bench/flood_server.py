"""A server for floods: many tools to search among, one that echoes, one with a large result."""

from typing import Any

from mcp.server import MCPServer

TOOLS = 1000
mcp = MCPServer("flood", log_level="ERROR")


@mcp.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@mcp.tool()
def rows(megabytes: int) -> dict[str, Any]:
    """Give back about that much structured content."""
    row = {"name": "somebody", "amount": 12.5, "tags": ["a", "b"], "open": True}
    return {"rows": [row] * (megabytes * 15_000)}


for number in range(TOOLS):
    mcp.add_tool(
        lambda text: text,
        name=f"report_{number}",
        description=f"Make report {number} on orders and shipments of region {number % 7}",
    )

if __name__ == "__main__":
    mcp.run()
