"""A server with trivial tools, to be measured: over stdio, or over HTTP with --port."""

import argparse

import anyio
from mcp.server import MCPServer

mcp = MCPServer("bench", log_level="ERROR")


@mcp.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@mcp.tool()
def page(size: int) -> str:
    """Give so many characters of lines that a log might have."""
    line = "2026-03-02 12:00:00 INFO worker finished its job, and wrote 12 rows of 40 columns\n"
    return (line * (size // len(line) + 1))[:size]


@mcp.tool()
def evaluate(code: str) -> str:
    """Evaluate Python, here and now."""
    return repr(eval(code))


@mcp.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await anyio.sleep(seconds)
    return "done"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int)
    chosen = parser.parse_args()
    if chosen.port:
        mcp.run("streamable-http", host="127.0.0.1", port=chosen.port)
    else:
        mcp.run()


if __name__ == "__main__":
    main()
