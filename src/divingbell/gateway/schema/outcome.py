"""The outcome of a call: the result of a tool in the form that the code inside gets."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from divingbell import text
from divingbell.errors import ToolFailed
from divingbell.gateway.functions.host_result import HostResult
from divingbell.gateway.schema import check
from divingbell.shares import weight
from divingbell.tool import Tool

if TYPE_CHECKING:
    # The SDK takes most of a second to load, and functions of the host need none of it.
    import mcp_types

    Outcome = mcp_types.CallToolResult | HostResult

MAX_MESSAGE = 10_000
MAX_PROBLEMS = 3
MAX_SIZE = 32 << 20
"""Bytes of one message of a server. How much parsing makes of it is weighed as well."""
TOO_LONG = (
    f"the result has more than {MAX_SIZE >> 20} MB, which is the most that is read. "
    "The call was made: ask for less at a time, in pages for instance"
)
TOO_MANY_VALUES = (
    "the result holds too many lists, objects and values. "
    "The call was made: ask for less at a time, in pages for instance, or for a plain text"
)
TOO_MUCH_AT_ONCE = (
    "the results that are under way are too large together. "
    "The call was made: make fewer calls at once, or ask for less"
)
UNREADABLE = (TOO_LONG, TOO_MANY_VALUES, TOO_MUCH_AT_ONCE)
"""Messages that stand in the place of a result that is too large."""


async def wire_of(tool: Tool, result: "Outcome") -> dict[str, Any]:
    """Return the content and, where there is one, the structured value, which is checked.

    Raises:
        ToolFailed: the tool says that it failed, or the value breaks the tool's own schema.
    """
    wire = await weight.beside(lambda found: _wire(tool, found), result)
    if tool.output_schema is not None:
        await _check(tool, wire, isinstance(result, HostResult))
        if tool.wraps_result:
            wire["structured"] = wire["structured"]["result"]
    return wire


def _wire(tool: Tool, result: "Outcome") -> dict[str, Any]:
    if result.is_error:
        raise ToolFailed(_error_message(tool, result))
    wire: dict[str, Any] = {}
    if result.structured_content is not None:
        wire["structured"] = result.structured_content
    elif tool.output_schema is not None:
        found = _parsed(tool, result)
        if found is not None:
            wire["structured"] = found[0]
    blocks = result.content
    if "structured" in wire:
        # Text beside a structured value is the same value once more, for older clients.
        blocks = [block for block in blocks if block.type != "text"]
    wire["content"] = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks
    ]
    return wire


def _parsed(tool: Tool, result: "Outcome") -> tuple[Any] | None:
    """The value of a result that is one text with JSON in it."""
    if len(result.content) != 1 or result.content[0].type != "text":
        return None
    found = result.content[0].text.encode("utf-8", "surrogatepass")
    if weight.weight_of(found, weight.MAX_RESULT) > weight.MAX_RESULT:
        raise ToolFailed(f"{tool.full_name}: {TOO_MANY_VALUES}", "tool_result")
    try:
        return (json.loads(found),)
    except (ValueError, RecursionError):
        return None


async def _check(tool: Tool, wire: Mapping[str, Any], by_function: bool) -> None:
    if "structured" not in wire:
        raise ToolFailed(
            f"{tool.full_name}: the server promises a structured result and sent none. "
            "The call was made",
            "tool_result",
        )
    problems = await check.checked(wire["structured"], tool.output_schema)
    if problems:
        words = "; ".join(str(problem) for problem in problems[:MAX_PROBLEMS])
        told = (
            "the function returned something else than its annotation says"
            if by_function
            else "the result is not what the server's own schema says"
        )
        raise ToolFailed(f"{tool.full_name}: {told}: {words}. The call was made", "tool_result")


def _error_message(tool: Tool, result: "Outcome") -> str:
    texts = [block.text for block in result.content if block.type == "text"]
    words = text.visible("\n".join(texts), MAX_MESSAGE).strip()
    return words or f"{tool.full_name} failed and did not say why"
