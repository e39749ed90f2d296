"""The service: what all operations of one server share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

from divingbell.app import Divingbell
from divingbell.surfaces.http.executions import Executions
from divingbell.surfaces.http.guard import Door
from divingbell.surfaces.http.queue import Queue, Room


@dataclass(frozen=True)
class Service:
    """One Divingbell, the door to it, and the runs that have come in by it."""

    bell: Divingbell
    door: Door
    executions: Executions
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @classmethod
    def of(cls, bell: Divingbell, door: Door) -> "Service":
        """Return the service of a Divingbell."""
        return cls(bell, door, Executions(bell, Queue(Room())))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve; at the end nothing runs any more, and all of it has its record."""
        stop_watching = self.bell.journal.watch(self.executions.watch)
        try:
            yield
        finally:
            await self.executions.close()
            if self._tasks:
                await asyncio.wait(self._tasks)
            stop_watching()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something whose request has gone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
