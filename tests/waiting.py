"""Bounded waits for tests: no sleep stands for an assertion."""

import asyncio
import inspect
import time
from collections.abc import Callable

from divingbell import Session

PATIENCE = 20.0


async def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Return once the condition holds; fail with `what` if it does not in so many seconds.

    The condition is a function, which may be async.
    """
    deadline = time.monotonic() + seconds
    while not await _value(condition):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)


async def until_there(session: Session, name: str) -> None:
    """Return once a running cell has made this file in its workspace: it is past that line."""

    async def is_there() -> bool:
        return any(item.path == name for item in await session.files.list())

    await until(is_there, f"the cell makes {name}")


async def _value(condition: Callable[[], object]) -> object:
    found = condition()
    return await found if inspect.isawaitable(found) else found
