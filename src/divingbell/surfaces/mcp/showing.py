"""Definitions of upstream servers as our clients see them: nothing in them is hidden.

A description is read by the model. Characters that nobody sees can carry orders to it, so they are
written out.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import mcp_types as types

from divingbell.gateway import text
from divingbell.gateway.tool import Tool

MAX_TEXT = 20_000
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names of tools that clients and the models behind them can take."""
_WORDS = ("description", "title", "$comment")

Item = TypeVar("Item", types.Resource, types.ResourceTemplate, types.Prompt)


def tool(name: str, tool: Tool) -> types.Tool:
    """Return the definition of a tool under a name of ours."""
    annotations = None
    if tool.annotations is not None:
        try:
            annotations = types.ToolAnnotations.model_validate(_visible(tool.annotations))
        except ValueError:
            annotations = None
    return types.Tool(
        name=name,
        description=tool.description or None,
        input_schema=_visible(tool.input_schema or {"type": "object"}),
        output_schema=None if tool.output_schema is None else _visible(tool.output_schema),
        annotations=annotations,
    )


def item(item: Item, name: str | None = None) -> Item:
    """Return a resource, a template or a prompt, with its words made visible."""
    changes: dict[str, Any] = {} if name is None else {"name": name}
    for field in ("description", "title"):
        words = getattr(item, field)
        if words is not None:
            changes[field] = text.visible(words, MAX_TEXT)
    if isinstance(item, types.Prompt) and item.arguments:
        changes["arguments"] = [
            argument.model_copy(
                update={"description": text.visible(argument.description or "", MAX_TEXT) or None}
            )
            for argument in item.arguments
        ]
    return item.model_copy(update=changes)


def _visible(value: Any) -> Any:
    """Return JSON with the words in it made visible; names and values stay as they are."""
    if isinstance(value, Mapping):
        return {
            key: text.visible(inner, MAX_TEXT)
            if key in _WORDS and isinstance(inner, str)
            else _visible(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_visible(inner) for inner in value]
    return value
