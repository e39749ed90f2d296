"""A model reads why its code was refused, and the person behind its client is asked."""

from collections.abc import AsyncIterator

import mcp_types as types
import pytest
from mcp import Client

from divingbell import Divingbell
from tests.surfaces.mcp.conftest import Listener, text_of

ASKED = "import os\nos.system('exit 3') >> 8"


@pytest.fixture(scope="module")
async def bell_with_shop() -> AsyncIterator[Divingbell]:
    rules = {"process": "ask", "dynamic": "deny"}
    async with Divingbell(pool=1, copy_after=0.0, preload=(), review={"rules": rules}) as bell:
        yield bell


async def run(client: Client, code: str) -> types.CallToolResult:
    return await client.call_tool("execute_python", {"code": code})


async def test_a_refusal_is_an_error_that_says_what_else_to_do(client: Client) -> None:
    result = await run(client, "x = 1\neval('x')")
    assert result.is_error
    assert "line 2 uses eval" in text_of(result) and "ast.literal_eval" in text_of(result)
    result = await run(client, "'x' in globals().keys()")
    assert result.is_error and "globals()" in text_of(result)


async def test_the_person_is_asked_with_the_lines(client: Client, listener: Listener) -> None:
    result = await run(client, ASKED)
    assert not result.is_error and "3" in text_of(result)
    [question] = listener.asked
    assert "line 2 starts a process with os.system" in question


async def test_a_no_is_told(client: Client, listener: Listener) -> None:
    listener.answer = types.ElicitResult(action="accept", content={"decision": "no"})
    result = await run(client, ASKED)
    assert result.is_error and "denied by the person who was asked" in text_of(result)


async def test_a_warning_is_told_with_the_result(client: Client) -> None:
    result = await run(client, "try:\n    import requests\nexcept ImportError:\n    print('no')")
    assert not result.is_error and "needs a network" in text_of(result)
