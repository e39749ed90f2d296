"""Paging: lists of a server, all pages of them, with a limit to each list."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types
from mcp import Client, MCPError
from pydantic import BaseModel

from divingbell.gateway.catalog.definitions import MAX_TOOLS

MOST_PAGES = 1000
MOST_ITEMS = 10_000
MOST_BYTES = 32 << 20

Item = TypeVar("Item", bound=BaseModel)


async def tools(client: Client) -> list[mcp_types.Tool]:
    """Return the tools, each name once."""
    if client.server_capabilities.tools is None:
        return []
    found = await _all(client.session.list_tools, lambda page: page.tools)
    return list({tool.name: tool for tool in reversed(found[:MAX_TOOLS])}.values())[::-1]


async def resources(client: Client) -> list[mcp_types.Resource]:
    """Return the resources."""
    if client.server_capabilities.resources is None:
        return []
    return await _all(client.session.list_resources, lambda page: page.resources)


async def resource_templates(client: Client) -> list[mcp_types.ResourceTemplate]:
    """Return the templates of resources."""
    if client.server_capabilities.resources is None:
        return []
    return await _all(client.session.list_resource_templates, lambda page: page.resource_templates)


async def prompts(client: Client) -> list[mcp_types.Prompt]:
    """Return the prompts."""
    if client.server_capabilities.prompts is None:
        return []
    return await _all(client.session.list_prompts, lambda page: page.prompts)


async def _all(
    ask: Callable[..., Awaitable[Any]], items_of: Callable[[Any], list[Item]]
) -> list[Item]:
    found: list[Item] = []
    size = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        try:
            page = await ask(params=mcp_types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == mcp_types.METHOD_NOT_FOUND:
                return found
            raise
        items = items_of(page)
        # Beside the event loop: a page may have megabytes.
        for item, length in zip(items, await asyncio.to_thread(_lengths, items), strict=True):
            size += length
            if size > MOST_BYTES or len(found) >= MOST_ITEMS:
                return found
            found.append(item)
        cursor = page.next_cursor
        if not cursor or cursor in seen:  # a list that bites its tail has no end
            return found
        seen.add(cursor)
    return found


def _lengths(items: Sequence[BaseModel]) -> list[int]:
    return [len(item.model_dump_json()) for item in items]
