"""Notices of changed lists, in the newer protocol: there they come only to whoever listens."""

import asyncio
from collections.abc import Awaitable, Callable

import mcp_types
from mcp import Client, MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds until it listens again, after the server has ended it."""


async def listen(client: Client, on_message: Callable[[object], Awaitable[None]]) -> None:
    """Pass changes on, as notifications of the older protocol, for as long as they come.

    A server of the older protocol tells them unasked: for it there is nothing to do.
    """
    if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return
    pause = FIRST_PAUSE
    while wanted := _announced_lists(client.server_capabilities):
        try:
            async with client.listen(
                tools_list_changed="tools" in wanted,
                prompts_list_changed="prompts" in wanted,
                resources_list_changed="resources" in wanted,
            ) as events:
                pause = FIRST_PAUSE
                # What changed before it listened was not heard.
                await on_message(mcp_types.ToolListChangedNotification())
                async for event in events:
                    await on_message(_notification(event))
        except Exception as error:
            if _is_refusal(error):
                return
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)


def _announced_lists(capabilities: mcp_types.ServerCapabilities) -> set[str]:
    """The lists whose changes the server says that it announces."""
    found = {
        "tools": capabilities.tools,
        "prompts": capabilities.prompts,
        "resources": capabilities.resources,
    }
    return {name for name, has in found.items() if has is not None and has.list_changed}


def _notification(event: object) -> object:
    """The older protocol's notification for an event of the newer one."""
    if isinstance(event, ToolsListChanged):
        return mcp_types.ToolListChangedNotification()
    if isinstance(event, ResourcesListChanged):
        return mcp_types.ResourceListChangedNotification()
    if isinstance(event, PromptsListChanged):
        return mcp_types.PromptListChangedNotification()
    return event


def _is_refusal(error: Exception) -> bool:
    """Whether a server does not know of listening, so that asking again is of no use."""
    if isinstance(error, MCPError):
        return error.code in (mcp_types.METHOD_NOT_FOUND, mcp_types.INVALID_PARAMS)
    return isinstance(error, ListenNotSupportedError)
