"""The service: what all operations of one server share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

from divingbell.app import Divingbell
from divingbell.surfaces.http.conversations import Conversations, MakeModel
from divingbell.surfaces.http.executions import Executions
from divingbell.surfaces.http.guard import Door
from divingbell.surfaces.http.pending import Pending
from divingbell.surfaces.http.queue import Queue, Room

DRAIN_LOOK = 0.05
"""Seconds between two looks at whether cells still run."""


@dataclass(frozen=True)
class Service:
    """One Divingbell, the door to it, and the runs that have come in by it."""

    bell: Divingbell
    door: Door
    executions: Executions
    queue: Queue
    """Of cells, whichever way they come in."""
    pending: Pending
    conversations: Conversations
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @classmethod
    def of(cls, bell: Divingbell, door: Door, make_model: MakeModel | None = None) -> "Service":
        """Return the service of a Divingbell. `make_model` makes the model of conversations, in the
        place of the settings."""
        given = bell.settings.service
        room = Room(given.cells, given.cells_of_user, given.waiting, given.waiting_of_user)
        queue = Queue(room)
        executions = Executions(bell, queue)
        pending = Pending(executions.of_cell)
        return cls(bell, door, executions, queue, pending, Conversations(bell, make_model))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve; at the end nothing runs any more, and all of it has its record."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.bell.journal.watch(self.executions.watch))
            undo.callback(self.bell.gateway.ask_also(self.pending))
            if self.bell.metrics is not None:
                self.bell.metrics.queue_length = lambda: self.queue.waiting
            try:
                yield
            finally:
                await self.conversations.close()
                await self.executions.close()
                if self._tasks:
                    await asyncio.wait(self._tasks)

    async def drain(self) -> None:
        """Begin nothing new, and give all cells that run their time, by whichever way they came."""
        settings = self.bell.settings.service
        self.executions.draining = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.drain_timeout):
                while any(session.busy for session in self.bell.sessions()):  # noqa: ASYNC110
                    await asyncio.sleep(DRAIN_LOOK)
        await self.executions.drain(0)

    def is_ready(self) -> bool:
        """Whether code can be run."""
        return self.bell.is_ready and not self.executions.draining

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something whose request has gone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
