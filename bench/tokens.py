"""The tokens that a model reads to use one tool out of two thousand, from the first message on.

The way through Divingbell: its own tools and instructions, a search, a look at the details of the
tool that the question is about, the call, each with what the model writes and what it gets. The
way without: the definitions of all tools (as `divingbell.journal` counts them), the same call.
Everything goes through a real `divingbell serve`, behind which servers list the real definitions.
"""

import json
from collections.abc import Mapping
from statistics import median
from typing import Any

import lists
import sample
import table
from mcp import Client
from mcp_types import CallToolResult, TextContent
from searching import serving

from divingbell.journal import tokens

MEASURE = "tokens to use 1 tool"
FEWER = 99.0
STEPS = ("own tools and instructions", "search", "details", "call")

Definition = Mapping[str, Any]


async def reading(count: int) -> list[table.Row]:
    """What is read on both ways, for tools that people ask for."""
    known = {
        f"{server}.{definition['name']}": definition
        for server, listed in lists.tool_lists().items()
        for definition in listed
    }
    loaded = sum(tokens.count(_as_read(definition)) for definition in known.values())
    ways = []
    found = 0
    async with lists.served() as entries, serving(entries) as client:
        surface = await _surface(client)
        await _wait_for_all(client)
        for question in lists.search_queries()[:count]:
            search, seen = await _ask(client, "search_tools", {"query": question["query"]})
            names = {line.split(" (")[0].split(": ")[0] for line in seen.splitlines()}
            right = next((name for name in question["answers"] if name in names), None)
            found += right is not None
            name = right or question["answers"][0]
            details = f'get_mcp_tool_details("{name}")'
            looked, _ = await _ask(client, "execute_python", {"code": details})
            called, _ = await _ask(client, "execute_python", {"code": _call(name, known[name])})
            ways.append((surface, search, looked, called))
    return _rows(ways, loaded, len(known), found)


async def _surface(client: Client) -> int:
    listed = (await client.list_tools()).tools
    shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    return tokens.count(json.dumps(shown, separators=(",", ":")) + (client.instructions or ""))


async def _wait_for_all(client: Client) -> None:
    """Search as a model does that comes late: when all servers are there."""
    waiting = f"import time\nwhile len(list_mcp_tools()) < {lists.count()}: time.sleep(0.1)"
    await _ask(client, "execute_python", {"code": waiting})


async def _ask(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[int, str]:
    """The tokens of a call and of the text that comes back, and that text."""
    result: CallToolResult = await client.call_tool(tool, arguments)
    shown = "".join(block.text for block in result.content if isinstance(block, TextContent))
    if result.is_error:
        raise RuntimeError(f"{arguments}: {shown}")
    written = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
    return tokens.count(written) + tokens.count(shown), shown


def _call(name: str, definition: Definition) -> str:
    """The code that a model would write; the answer is short, as the code sees to it."""
    arguments = sample.of(definition["inputSchema"])
    return f'str(call_mcp_tool("{name}", {arguments!r}))[:500]'


def _as_read(definition: Definition) -> str:
    shown = {
        "name": definition["name"],
        "description": definition.get("description", ""),
        "input_schema": definition["inputSchema"],
    }
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _rows(ways: list[tuple[int, ...]], loaded: int, tools: int, found: int) -> list[table.Row]:
    totals = [sum(way) for way in ways]
    least = [
        (1 - total / (loaded + way[-1])) * 100 for total, way in zip(totals, ways, strict=True)
    ]
    saved, worst = median(least), min(least)
    met = sum(value >= FEWER for value in least)
    rows = [
        table.Row(
            MEASURE,
            "through Divingbell, the whole way",
            f"{median(totals):,.0f} tokens",
            ratio=f"{saved:.2f} % fewer; the worst {worst:.2f} %",
            target=f"≥ {FEWER:g} % fewer: "
            + ("met" if met == len(ways) else f"{met} of {len(ways)}"),
            spread=f"{min(totals):,} – {max(totals):,} (all)",
            runs=str(len(ways)),
        )
    ]
    for name, values in zip(STEPS, zip(*ways, strict=True), strict=True):
        spread = f"{min(values):,} – {max(values):,} (all)"
        rows.append(table.Row(MEASURE, f"· {name}", f"{median(values):,.0f} tokens", spread=spread))
    rows.append(table.Row(MEASURE, f"all {tools:,} definitions loaded", f"{loaded:,} tokens", "1"))
    rows.append(
        table.Row(MEASURE, "a right tool was among the ten found", f"{found} of {len(ways)}")
    )
    return rows
