"""A Divingbell as the benchmarks want it, and the look behind it that only they need."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from divingbell import Divingbell, Session

PATIENCE = 180.0


@asynccontextmanager
async def ring(**settings: Any) -> AsyncIterator[Divingbell]:
    """A Divingbell as it ships, with room enough."""
    settings = {"max_sessions": 1000} | settings
    async with Divingbell(**settings) as bell:
        yield bell


async def pool_is_full(bell: Divingbell) -> None:
    """Return when the pool is full: its filling must not fall into another one's time."""
    assert bell._engine is not None
    async with asyncio.timeout(PATIENCE):
        while len(bell._engine._pool) < bell._engine._pool.wanted:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.002)


def first_process(session: Session) -> int:
    """The pid, on the host, of a session's pid 1."""
    pid = session._handle._interpreter.sandbox.pid  # type: ignore[attr-defined]
    assert isinstance(pid, int)
    return pid
