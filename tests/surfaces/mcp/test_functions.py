"""Functions of the program that serves: clients reach them by code, and some of them directly."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client

from divingbell import Divingbell, ToolContext, ToolFailed
from divingbell.surfaces.mcp.server import Surface
from tests.surfaces.mcp.conftest import Era, text_of


@asynccontextmanager
async def served(mode: str, era: Era) -> AsyncIterator[Client]:
    """A client of a Divingbell with two functions, of which one is direct."""
    bell = Divingbell(mode=mode, pool=0, preload=[], search="words")

    @bell.tool(direct=True)
    def price(sku: str, context: ToolContext) -> list[int]:
        """Tell the prices of a product."""
        if sku == "none":
            raise ToolFailed("there is no such product")
        return [len(sku)]

    @bell.tool
    def restock(sku: str) -> None:
        """Order more of a product."""

    async with bell:
        surface = Surface(bell)
        try:
            async with Client(surface.server, mode=era, cache=None) as client:
                yield client
        finally:
            await surface.close()


async def test_code_of_clients_calls_functions(era: Era) -> None:
    async with served("code", era) as client:
        assert "Servers: host" in (client.instructions or "")
        found = await client.call_tool("search_tools", {"query": "prices of a product"})
        assert "host.price" in text_of(found)
        result = await client.call_tool(
            "execute_python", {"code": "from servers.host import price; price('abc')"}
        )
        assert text_of(result).startswith("[3]")
        assert "price" not in {tool.name for tool in (await client.list_tools()).tools}


async def test_in_hybrid_mode_clients_call_those_that_are_direct(era: Era) -> None:
    async with served("hybrid", era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "price" in tools and "restock" not in tools
        assert list(tools["price"].input_schema["properties"]) == ["sku"]
        result = await client.call_tool("price", {"sku": "abcd"})
        assert result.structured_content == {"result": [4]} and not result.is_error
        failed = await client.call_tool("price", {"sku": "none"})
        assert failed.is_error and text_of(failed) == "there is no such product"
        wrong = await client.call_tool("price", {"sku": 5})
        assert wrong.is_error and "sku must be a string" in text_of(wrong)
        assert (await client.list_prompts()).prompts == []
        resources: list[types.Resource] = (await client.list_resources()).resources
        assert not [each for each in resources if "host" in each.uri]
