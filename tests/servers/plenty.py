"""A server with more tools than a search shows: two, and as many more as are asked for."""

import sys

from mcp.server import MCPServer

server = MCPServer("plenty", instructions="Shelves, and what is on them.")


@server.tool()
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@server.tool(name="get-page")
def get_page(url: str) -> str:
    """Fetch a web page from a url."""
    return f"the page at {url}"


def shelf(number: int) -> None:
    server.add_tool(lambda: number, name=f"shelf_{number:03}", description=f"Shelf {number}")


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        shelf(number)
    server.run("stdio")
