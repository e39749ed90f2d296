"""The service: what all operations of one server share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from divingbell.app import Divingbell
from divingbell.session.base import SessionHandle
from divingbell.surfaces.http.conversations import Conversations, MakeModel
from divingbell.surfaces.http.executions import Executions
from divingbell.surfaces.http.guard import Door
from divingbell.surfaces.http.pending import Pending
from divingbell.surfaces.http.queue import Queue, Room

CANCEL_TIMEOUT = 5.0
"""Seconds for cells to end that were interrupted, beside `interrupt_grace`."""
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
        conversations = Conversations(bell, queue, make_model)
        return cls(bell, door, executions, queue, pending, conversations)

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
                self.queue.close()
                await self.conversations.close()
                await self.executions.close()
                if self._tasks:
                    await asyncio.wait(self._tasks)

    async def drain(self) -> None:
        """Begin nothing new, and give all cells their time, by whichever way they came, and all
        answers of the agent."""
        settings = self.bell.settings
        self.queue.draining = True
        if not await self._idle(settings.service.drain_timeout):
            self.queue.closed = True
            await self.executions.cancel_all()
            self.queue.close()
            # Answers first: else a model would be told of its cell, and go on.
            await self.conversations.cancel_all()
            await asyncio.gather(*(session.interrupt() for session in self._at_work()))
            await self._idle(settings.interrupt_grace + CANCEL_TIMEOUT)

    async def _idle(self, seconds: float) -> bool:
        """Wait until nothing runs or waits; return whether it came to that in time."""
        try:
            async with asyncio.timeout(seconds):
                while self._is_busy():  # noqa: ASYNC110 (nothing tells)
                    await asyncio.sleep(DRAIN_LOOK)
        except TimeoutError:
            return False
        return True

    def _is_busy(self) -> bool:
        asked = self.queue.running or self.queue.waiting or self.executions.active()
        return bool(asked or self._at_work() or self.conversations.are_answering())

    def _at_work(self) -> Sequence[SessionHandle]:
        """Return the sessions in which something runs, by whichever way it came."""
        if not self.bell.is_ready:
            return []
        return [session for session in self.bell.sessions() if session.busy]

    def is_ready(self) -> bool:
        """Whether code can be run."""
        return self.bell.is_ready and not self.queue.draining

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something whose request has gone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
