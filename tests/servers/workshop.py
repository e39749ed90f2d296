"""A server with a tool for each thing a tool can do: progress, logs, questions, an early death."""

import asyncio
import os
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("workshop", instructions="A workshop for tests.")
cancelled: list[str] = []


class Colour(BaseModel):
    colour: str


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def environment() -> dict[str, str]:
    return dict(os.environ)


@server.tool()
def complain(text: str) -> str:
    """Say something on stderr."""
    print(text, file=sys.stderr, flush=True)
    return "said"


@server.tool()
def fail(text: str) -> str:
    raise ValueError(text)


@server.tool()
def die(status: int = 3, words: str = "the roof fell in") -> str:
    print(words, file=sys.stderr, flush=True)
    os._exit(status)


@server.tool()
async def count(context: Context, to: int = 3) -> int:
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"step {number}")
    return to


@server.tool()
async def tell(context: Context, text: str) -> str:
    await context.info(text)
    return "told"


@server.tool()
async def sleep(context: Context, seconds: float, name: str = "sleeper") -> str:
    await context.report_progress(0, 1, "asleep")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled.append(name)
        raise
    return "slept"


@server.tool()
def cancellations() -> list[str]:
    return cancelled


def _ask() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(answer: Annotated[Colour, Resolve(_ask)]) -> str:
    return f"painted {answer.colour}"


@server.tool()
async def grow(context: Context, name: str) -> str:
    """Add a tool to the list."""
    server.add_tool(lambda: name, name=name, description="grown")
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "grown"


@server.resource("shop://sign")
def sign() -> str:
    return f"welcome, the password is {os.environ.get('SHOP_TOKEN', 'none')}"


@server.prompt()
def greeting(name: str) -> str:
    return f"Greet {name}."


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if where == "stdio":
        server.run("stdio")
    else:
        server.run(where, host="127.0.0.1", port=int(sys.argv[2]))  # type: ignore[call-overload]
