"""Divingbell behind each of its walls, to be measured."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import bells
from peers import Task, first_result, round_trips

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
        return [await first_result(self._bell, task, COLD)]

    async def restored(self, task: Task) -> list[float]:
        return [await first_result(self._bell, task, ON_DEMAND)]

    async def from_pool(self, task: Task) -> list[float]:
        await bells.pool_is_full(self._bell)
        taken = await first_result(self._bell, task)
        await bells.pool_is_full(self._bell)
        return [taken]

    async def round_trips(self, count: int) -> list[float]:
        """Seconds of each of `count` plain tasks in the session that lives."""
        return await round_trips(self._warm, count)
