"""Definitions and findings, in the forms that clients and their models read."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types

from divingbell.amounts import amount
from divingbell.gateway.catalog.descriptions import SERVERS
from divingbell.gateway.discovery import Findings
from divingbell.surfaces.mcp.definitions import joined
from divingbell.tool import Tool

NOTHING = "No tool fits: try other words; an empty query lists all that there are."
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names of tools that clients and their models can take."""


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
        lines.append(f"[not available: {joined(missing)}. `divingbell servers` tells people why]")
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
