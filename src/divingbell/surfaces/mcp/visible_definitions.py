"""The way of every text to a client: nothing in it is hidden.

Names, descriptions, questions and errors are read by a model or a channel. Characters that nobody
sees can carry orders to the one and deceive the other, so they are written out; what acts on a
terminal is removed. The content of results and of resources is data, and stays as it is.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp import MCPError
from pydantic import BaseModel

from divingbell.amounts import amount
from divingbell.gateway.catalog.catalog import SERVERS
from divingbell.gateway.discovery import Findings
from divingbell.shares import weight
from divingbell.surfaces.mcp.callers import Context
from divingbell.surfaces.mcp.definitions import NAMES, named
from divingbell.text import everywhere
from divingbell.tool import Tool

NOTHING = "No tool fits: try other words; an empty query lists all that there are."
MAX_TEXT = 64_000
LONG = 8_000
"""Characters; where there are more, they are made visible beside the event loop. A hidden one
takes 2 µs, a hundred times as long as others."""
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names of tools that clients and the models behind them can take."""

Model = TypeVar("Model", bound=BaseModel)


def findings(
    found: Findings,
    detail: str,
    missing: Sequence[str],
    servers: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return what a search has found, for a model to read; `missing` are servers of which it does
    not know yet that they are not available, `servers` those in which it may look closer.

    Why they are not says nothing to a model, and much about this machine: it is not told.
    """
    lines = [_finding(item, detail) for item in found.items] or [NOTHING]
    if rest := found.rest():
        lines.append(f"[{rest}]")
    if servers:
        told = ", ".join(f"{item['server']} ({amount(item['tools'], 'tool')})" for item in servers)
        lines.append(f"[best servers: {told}; server= searches one of them]")
    if missing:
        lines.append(f"[not available: {named(missing)}. `divingbell servers` tells people why]")
    return "\n".join(lines)


def _finding(tool: Mapping[str, Any], detail: str) -> str:
    if detail == SERVERS:
        tools = amount(tool["tools"], "tool")
        return f"{tool['server']}: {tools}, such as {', '.join(tool['best'])}"
    if detail == "full":
        return json.dumps(tool, ensure_ascii=False)
    name = f"{tool['name']} ({tool['python']})" if "python" in tool else str(tool["name"])
    return f"{name}: {tool['description']}".rstrip(": ") if "description" in tool else name


def tool(name: str, tool: Tool) -> types.Tool:
    """Return the definition of a tool under a name of ours."""
    annotations = None
    if tool.annotations is not None:
        try:
            annotations = types.ToolAnnotations.model_validate(tool.annotations)
        except ValueError:
            annotations = None
    return types.Tool(
        name=name,
        description=tool.description or None,
        input_schema=dict(tool.input_schema or {"type": "object"}),
        output_schema=None if tool.output_schema is None else dict(tool.output_schema),
        annotations=annotations,
    )


async def model(model: Model) -> Model:
    """Return a question or a message with all its texts made visible."""
    return await weight.beside(_model, model, text=LONG)


def _model(model: Model) -> Model:
    dumped = model.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return type(model).model_validate(everywhere(dumped, MAX_TEXT), by_name=False)


async def outgoing(ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
    """Make each answer and each error visible on its way out (a middleware)."""
    try:
        answer = await call_next(ctx)
    except MCPError as error:
        said = [error.message, error.error.data]
        words, data = await weight.beside(_words, said, text=LONG)
        raise MCPError(error.code, words, data) from None
    if not isinstance(answer, Mapping):
        return answer
    own = ctx.method == "tools/call" and (ctx.params or {}).get("name") in NAMES
    if own and "inputRequests" not in answer:
        return dict(answer)
    return await weight.beside(lambda found: result(ctx.method, found), answer, text=LONG)


def _words(said: list[Any]) -> Any:
    return everywhere(said, MAX_TEXT)


def result(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its words made visible, and its data as it is."""
    if method not in ("tools/call", "resources/read") or answer.get("isError"):
        return dict(everywhere(answer, MAX_TEXT))
    return {name: _part(name, part) for name, part in answer.items()}


def _part(name: str, part: Any) -> Any:
    if name == "structuredContent":
        return part
    if name in ("content", "contents") and isinstance(part, list):
        return [_block(block) for block in part]
    return everywhere(part, MAX_TEXT)


def _block(block: Any) -> Any:
    """A block of content: what it is called is made visible, what is in it stays."""
    if not isinstance(block, Mapping):
        return everywhere(block, MAX_TEXT)
    kept = {name: block[name] for name in ("text", "blob", "data") if name in block}
    if "resource" in block:
        kept["resource"] = _block(block["resource"])
    words = {name: value for name, value in block.items() if name not in kept}
    return everywhere(words, MAX_TEXT) | kept
