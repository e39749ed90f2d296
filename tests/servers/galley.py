"""A server for tests of code that calls tools, one behaviour each. Over stdio, or HTTP."""

import base64
import sys
import time
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
mcp = MCPServer("galley", instructions="Small tools for tests.")
jobs: dict[str, float] = {}
counters: dict[str, int] = {}


class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []


class Order(BaseModel):
    customer: str
    items: list[Item]
    total: float


@mcp.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool()
def order(customer: str, items: list[Item], currency: Literal["EUR", "USD"] = "EUR") -> Order:
    """Put an order together."""
    return Order(customer=customer, items=items, total=sum(item.price for item in items))


@mcp.tool()
async def sleep(seconds: float) -> str:
    """Wait."""
    counters["asleep"] = counters.get("asleep", 0) + 1
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        counters["cancelled"] = counters.get("cancelled", 0) + 1
        raise
    return f"slept {seconds} s"


@mcp.tool()
def fail(message: str) -> str:
    """Always fails."""
    raise ToolError(message)


@mcp.tool()
def pixel() -> Image:
    """A picture of one pixel."""
    return Image(data=PIXEL, format="png")


@mcp.tool()
def postcard(words: str) -> list[str | Image]:
    """Give back some words and a picture."""
    return [words, Image(data=PIXEL, format="png")]


@mcp.tool()
async def climb(steps: int, ctx: Context) -> str:
    """Report progress on the way."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "at the top"


@mcp.tool()
def rows(count: int) -> list[dict[str, int | str]]:
    """Rows of a table."""
    return [
        {"id": number, "state": "open" if number % 1000 == 0 else "done"} for number in range(count)
    ]


@mcp.tool()
def big(megabytes: float) -> str:
    """A long text."""
    return "x" * int(megabytes * (1 << 20))


@mcp.tool()
def start_job(seconds: float) -> str:
    """Start a job that takes a while; returns its id."""
    identifier = f"job-{len(jobs) + 1}"
    jobs[identifier] = time.monotonic() + seconds
    return identifier


@mcp.tool()
def job_state(id: str) -> dict[str, str]:
    """Say how a job is doing: running or done."""
    return {"id": id, "state": "done" if time.monotonic() >= jobs[id] else "running"}


@mcp.tool()
def count(name: str = "visits") -> int:
    """Count up, as long as this process lives."""
    counters[name] = counters.get(name, 0) + 1
    return counters[name]


@mcp.tool()
def counted(name: str) -> int:
    """What was counted."""
    return counters.get(name, 0)


class Choice(BaseModel):
    colour: str


async def ask_for_colour() -> Elicit[Choice]:
    return Elicit("Which colour?", Choice)


@mcp.tool()
def paint(thing: str, choice: Annotated[Choice, Resolve(ask_for_colour)]) -> str:
    """Paint something in the colour that the person chooses."""
    return f"{thing} is {choice.colour}"


@mcp.tool()
def orders_of(user_id: str, limit: int = 10) -> list[str]:
    """The orders of a user."""
    return [f"{user_id}-{number}" for number in range(limit)]


@mcp.tool(name="open")
def open_a_tin(kind: str) -> str:
    """Open a tin."""
    return f"{kind} is open"


@mcp.resource("notes://today")
def today() -> str:
    """A note."""
    return "Dive at noon."


@mcp.resource("notes://picture", mime_type="image/png")
def picture() -> bytes:
    """A picture as a resource."""
    return PIXEL


@mcp.resource("notes://day/{day}")
def day(day: str) -> str:
    """The note of a day."""
    return f"Nothing on {day}."


@mcp.prompt()
def plan(topic: str) -> str:
    """Plan something."""
    return f"Make a plan about {topic}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        mcp.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        mcp.run()
