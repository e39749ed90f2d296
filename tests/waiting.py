"""Bounded waits for tests: no sleep stands for an assertion."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 20.0


async def until(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds; fail with `what` if it does not in good time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)
