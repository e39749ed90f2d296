"""A Divingbell in front of the shop, alone or beside other servers."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
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
async def opened(
    shop: retail.Shop, others: int = 0, names: Collection[str] | None = None
) -> AsyncIterator[Divingbell]:
    """A Divingbell in front of the shop, and of so many other servers with real tool lists."""
    with hosted({retail.NAME: retail.server(shop, names)}) as entries:
        if not others:
            async with connected(entries) as bell:
                yield bell
            return
        async with lists.served() as known:
            chosen = random.Random(1).sample(sorted(known), min(others, len(known)))
            async with connected({**entries, **{name: known[name] for name in chosen}}) as bell:
                yield bell


@asynccontextmanager
async def connected(entries: dict[str, Any]) -> AsyncIterator[Divingbell]:
    """A Divingbell whose servers have all listed their tools."""
    lean = {"pool": 1, "preload": [], "copy_after": 0.0}  # nothing is timed here
    settings = {"servers": entries, "search": "words", "agent": {"turns": TURNS}}
    async with bells.ring(**settings, **lean) as bell:
        async with asyncio.timeout(bells.PATIENCE), bell.session() as session:
            for name in entries:
                await bell.gateway.fleet.wait_for_tools(name)
            if not (await offered(bell.gateway, session)).is_whole:
                raise RuntimeError("not all servers have listed their tools")
        yield bell
