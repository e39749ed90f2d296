"""Divingbell behind each of its walls, to be measured."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import bells
from peers import PLAIN, Task

from divingbell import Divingbell, Session
from divingbell.sandbox import registry
from divingbell.sandbox.gvisor import checkpoint

SETTINGS: dict[str, dict[str, Any]] = {row.name: {"backend": row.name} for row in registry.OURS}
POOL = 2
ON_DEMAND: dict[str, Any] = {"timeout": 29.0}
"""Limits of its own make a session that the pool can't have."""
COLD: dict[str, Any] = {"open_files": 1000}
"""This one is part of what gVisor saves: such a session can't be restored either."""
RESTORING = "gvisor"
RESTORED = f"{RESTORING}, by restore"


class Wall:
    """One of them, with a pool and a session that lives. Used within `async with wall.ready()`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bell: Divingbell
        self._warm: Session

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """Raises DivingbellError where this machine can't do it."""
        async with (
            bells.ring(**SETTINGS[self.name], pool=POOL) as self._bell,
            self._bell.session(**ON_DEMAND) as self._warm,
        ):
            await bells.pool_is_full(self._bell)
            yield

    def refusal(self) -> str:
        """Why its sessions are not restored but start cold; nothing if they are."""
        backend: Any = self._bell._engine._backend  # type: ignore[union-attr]
        saved = checkpoint.find(backend._root, backend._key(self._bell.settings.limits))
        return "nothing was saved" if saved is None else saved.refusal

    async def cold(self, task: Task) -> list[float]:
        return [await self._first(task, COLD)]

    async def restored(self, task: Task) -> list[float]:
        return [await self._first(task, ON_DEMAND)]

    async def from_pool(self, task: Task) -> list[float]:
        await bells.pool_is_full(self._bell)
        taken = await self._first(task, {})
        await bells.pool_is_full(self._bell)
        return [taken]

    async def _first(self, task: Task, limits: dict[str, Any]) -> float:
        """Seconds from asking for a session to the answer of its first task."""
        started = time.perf_counter()
        async with self._bell.session(**limits) as session:
            result = await session.run(task.cell)
            taken = time.perf_counter() - started
            task.check(result.value)
        return taken

    async def round_trips(self, count: int) -> list[float]:
        """Seconds of each of `count` plain tasks in the session that lives."""
        found = []
        for _ in range(count):
            started = time.perf_counter()
            result = await self._warm.run(PLAIN.cell)
            found.append(time.perf_counter() - started)
            PLAIN.check(result.value)
        return found
