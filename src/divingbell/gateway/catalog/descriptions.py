"""Descriptions of tools as plain data, with as much detail as was asked for."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from divingbell import text
from divingbell.errors import InvalidInput
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.definitions import MAX_DESCRIPTION
from divingbell.tool import Tool

MAX_BRIEF = 300
MAX_DEPTH = 60
MAX_DESCRIBED = 1 << 18
"""Characters of schemas that one search describes in full; a single one may be longer."""
SERVERS = "servers"
LEVELS = ("name_only", "with_description", "full", SERVERS)


def check_level(detail_level: str) -> None:
    """Raise InvalidInput if there is no such level of detail."""
    if detail_level not in LEVELS:
        given = str(detail_level)[:80]
        raise InvalidInput(f"detail_level is one of {', '.join(LEVELS)}, not {given!r}")


def fitting(tools: Sequence[Tool], detail_level: str) -> list[Tool]:
    """Return the first of them, as many as can be described at once; at least one."""
    if detail_level != "full":
        return list(tools)
    found: list[Tool] = []
    left = MAX_DESCRIBED
    for tool in tools:
        left -= len(json.dumps([tool.input_schema, tool.output_schema]))
        if found and left < 0:
            break
        found.append(tool)
    return found


async def described(tools: Sequence[Tool], detail_level: str) -> list[dict[str, Any]]:
    """Put tools into plain data, with as much detail as the level says.

    Beside the event loop where there is a schema to be read: some have a hundred thousand parts.
    """
    if detail_level == "full":
        return await asyncio.to_thread(_described, tools, detail_level)
    return _described(tools, detail_level)


def _described(tools: Sequence[Tool], detail_level: str) -> list[dict[str, Any]]:
    found = []
    for tool in tools:
        item: dict[str, Any] = {"name": tool.full_name, "server": tool.server}
        if tool.full_name != f"{tool.package}.{tool.function}":
            item["python"] = f"servers.{tool.package}.{tool.function}"
        if detail_level == "with_description":
            item["description"] = _brief(tool.description)
        if detail_level == "full":
            item |= {
                "description": tool.description,
                "input_schema": _readable(tool.input_schema) or {"type": "object"},
                "output_schema": _readable(tool.output_schema),
                "signature": wrappers.signature(tool),
                "import": f"from servers.{tool.package} import {tool.function}",
            }
        found.append(item)
    return found


def _brief(description: str) -> str:
    """As much of a description as fits into a line or two: ten of them are read to choose one."""
    line = " ".join(description.split())
    return line if len(line) <= MAX_BRIEF else f"{line[: MAX_BRIEF - 1]}…"


def _readable(schema: Any) -> Any:
    """A schema in which each text shows all that it holds."""
    return text.everywhere(schema, MAX_DESCRIPTION, text.MAX_DEPTH - MAX_DEPTH)
