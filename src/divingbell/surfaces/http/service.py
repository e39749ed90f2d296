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
        queue = Queue(Room())
        executions = Executions(bell, queue)
        talks = Conversations(bell, make_model)
        return cls(bell, door, executions, queue, Pending(executions.of_cell), talks)

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

    def is_ready(self) -> bool:
        """Whether code can be run."""
        return self.bell.is_ready and not self.executions.draining

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something whose request has gone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
