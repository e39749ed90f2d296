"""A Divingbell, and the shop behind it, alone or beside other servers."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import bells
import lists
import retail
from hosted import hosted

from divingbell import Divingbell
from divingbell.agent.direct_tools import offered

TURNS = 200
"""More than any answer takes: direct calls one after the other take some fifty."""


@asynccontextmanager
async def lean() -> AsyncIterator[Divingbell]:
    """A Divingbell without servers, which are added for one part of the work after the other."""
    few = {"pool": 1, "preload": [], "copy_after": 0.0}  # nothing is timed here
    async with bells.ring(search="words", agent={"turns": TURNS}, **few) as bell:
        yield bell


@asynccontextmanager
async def opened(
    bell: Divingbell, shop: retail.Shop, others: int = 0, names: Collection[str] | None = None
) -> AsyncIterator[None]:
    """The shop, and so many other servers with real tool lists."""
    async with AsyncExitStack() as stack:
        entries = stack.enter_context(hosted({retail.NAME: retail.server(shop, names)}))
        if others:
            known = await stack.enter_async_context(lists.served())
            chosen = random.Random(1).sample(sorted(known), min(others, len(known)))
            entries |= {name: known[name] for name in chosen}
        await stack.enter_async_context(connected(bell, entries))
        yield


@asynccontextmanager
async def connected(bell: Divingbell, entries: dict[str, Any]) -> AsyncIterator[None]:
    """Servers that have all listed their tools. With the block they are gone again."""
    try:
        for name, table in entries.items():
            bell.gateway.add(name, table)
        async with asyncio.timeout(bells.PATIENCE), bell.session() as session:
            for name in entries:
                await bell.gateway.fleet.wait_for_tools(name)
            if not (await offered(bell.gateway, session)).is_whole:
                raise RuntimeError("not all servers have listed their tools")
        yield
    finally:
        for name in entries:
            await bell.gateway.remove(name)
