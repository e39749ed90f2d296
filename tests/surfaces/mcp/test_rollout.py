"""Rollout: `mode = "direct"`, and users in the arms of an experiment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError

from divingbell import Divingbell
from divingbell.surfaces.mcp.callers import LOGIN
from divingbell.surfaces.mcp.definitions import DIRECT, NAMES
from divingbell.surfaces.mcp.server import Surface
from tests.gateway.galley import ENTRY
from tests.surfaces.mcp.conftest import text_of

RULES = {"rules": [{"tools": ["galley.add"], "when": {"a": "13"}, "action": "deny"}]}


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[tuple[Divingbell, Client]]:
    """A client of a Divingbell with the galley's tools."""
    usual: dict[str, Any] = {"pool": 0, "preload": [], "search": "words", "metrics": "on"}
    async with Divingbell(servers={"galley": ENTRY}, policy=RULES, **(usual | settings)) as bell:
        surface = Surface(bell)
        try:
            async with Client(surface.server) as client:
                yield bell, client
        finally:
            await surface.close()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_in_direct_mode_all_tools_are_passed_through_and_no_code_is_run() -> None:
    async with opened(mode="direct") as (_, client):
        found = await names(client)
        assert {"add", "echo"} <= found and found.isdisjoint(NAMES)
        assert client.instructions == DIRECT
        assert text_of(await client.call_tool("add", {"a": 2, "b": 3})) == "5"
        with pytest.raises(MCPError, match="there is no tool 'execute_python'"):
            await client.call_tool("execute_python", {"code": "1"})


async def test_direct_calls_pass_the_same_door() -> None:
    async with opened(mode="direct") as (_, client):
        refused = await client.call_tool("add", {"a": 13, "b": 1})
        assert refused.is_error and "denied" in text_of(refused)


async def test_an_experiment_says_which_user_has_which_mode_and_metrics_tell_the_arms() -> None:
    arms = {"users": {"direct": [LOGIN], "hybrid": ["somebody else"]}}
    async with opened(experiment=arms) as (bell, client):
        assert "echo" in await names(client) and client.instructions == DIRECT
        await client.call_tool("echo", {"text": "x" * 400})
        assert bell.metrics is not None
        text = (await bell.metrics.render()).decode()
    assert 'divingbell_tokens_read_total{arm="direct"} ' in text
    assert 'divingbell_conversations_total{used="direct"} 1.0' in text


@pytest.mark.parametrize("arm", ["code", "auto"])
async def test_users_of_other_arms_have_code(arm: str) -> None:
    async with opened(experiment={"users": {arm: [LOGIN], "direct": ["x"]}}) as (_, client):
        assert await names(client) == NAMES
        assert client.instructions != DIRECT
        assert text_of(await client.call_tool("execute_python", {"code": "6 * 7"})) == "42\n"
