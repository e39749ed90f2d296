"""Executions: runs of code of all users. None of them ends without a record."""

import asyncio
import contextlib
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from divingbell import logs
from divingbell.app import Divingbell
from divingbell.journal.events import CellStarted, JournalEvent
from divingbell.session.base import SessionHandle
from divingbell.session.options import SessionOptions
from divingbell.surfaces.http.execution import LOST, Execution, Work, with_note
from divingbell.surfaces.http.problems import AGAIN, Refused
from divingbell.surfaces.http.queue import Queue, Ticket
from divingbell.surfaces.http.quotas import MAX_HELD
from divingbell.surfaces.http.visitor import Visitor

log = logs.logger("divingbell")

MOST_OF_USER = 200
"""Executions that are kept of one user after their end."""
MOST_BYTES = 32 << 20
"""Bytes of their logs and results. The newest is kept however large it is."""
KEPT_FOR = 3600.0
"""Seconds that one is kept after its end."""
Key = tuple[str, bytes]
"""An Idempotency-Key, and the hash of what was asked for with it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where code is run: a session by its name, which is made where it is not there."""

    session: str
    limits: Mapping[str, Any] | None = None
    options: SessionOptions | None = None
    once: bool = False
    """It ends with the run."""


@dataclass(slots=True)
class _OfUser:
    """The executions of one user."""

    known: dict[str, Execution] = field(default_factory=dict)
    """By id, the oldest first."""
    keys: dict[str, Execution] = field(default_factory=dict)
    active: dict[str, Execution] = field(default_factory=dict)
    """By id, those that have not ended."""
    ended: deque[Execution] = field(default_factory=deque)
    size: int = 0
    """Bytes of those that have ended."""

    def check_room(self, work: Work) -> None:
        """Raise Refused where what waits and runs takes too much memory already."""
        held = sum(each.work.cost for each in self.active.values())
        if held and held + work.cost > MAX_HELD:
            words = "what waits and runs of yours is too large together: wait for some of it to end"
            raise Refused(429, "too_many_requests", words).retry_after(AGAIN)

    def begin(self, execution: Execution) -> None:
        self.known[execution.id] = self.active[execution.id] = execution
        if execution.key is not None:
            self.keys[execution.key[0]] = execution

    def end(self, execution: Execution) -> None:
        del self.active[execution.id]
        self.ended.append(execution)
        self.size += execution.size
        oldest = time.time() - KEPT_FOR
        while len(self.ended) > 1 and self._is_too_much(oldest):
            self._forget(self.ended.popleft())

    def _is_too_much(self, oldest: float) -> bool:
        is_old = (self.ended[0].ended or 0.0) < oldest
        return is_old or len(self.ended) > MOST_OF_USER or self.size > MOST_BYTES

    def _forget(self, execution: Execution) -> None:
        self.size -= execution.size
        del self.known[execution.id]
        if execution.key is not None:
            self.keys.pop(execution.key[0], None)


class Executions:
    """Runs code for visitors, and keeps what came of it."""

    def __init__(self, bell: Divingbell, queue: Queue) -> None:
        self._bell = bell
        self._queue = queue
        self._users: defaultdict[str, _OfUser] = defaultdict(_OfUser)
        self._running: dict[str, list[Execution]] = {}
        """By the key of a session, those whose code is on its way there."""
        self._closing: set[asyncio.Task[Any]] = set()

    def watch(self, event: JournalEvent) -> None:
        """Take note of cells that begin (a subscriber of the journal)."""
        if isinstance(event, CellStarted):
            for execution in self._running.get(event.key, ()):
                # The very text that was given: another client may run the same in this session.
                if execution.work.code is event.code and execution.state == "queued":
                    execution.begin(event.cell)
                    return

    def begin(
        self, visitor: Visitor, place: Place, work: Work, key: Key | None = None
    ) -> Execution:
        """Begin to run code; with a key that was used already, return what that has begun.

        Raises:
            Refused: there is no room for it, or the key was used for something else.
        """
        mine = self._users[visitor.user]
        if key is not None and (earlier := mine.keys.get(key[0])) is not None:
            if earlier.key != key:
                words = "this Idempotency-Key came with another request: use a new one"
                raise Refused(422, "idempotency_key_reused", words)
            return earlier
        mine.check_room(work)
        execution = Execution(visitor.user, place.session, work, key)
        ticket = self._queue.enter(visitor.user, place.session, execution.queued)
        mine.begin(execution)
        running = self._run(execution, ticket, visitor, place)
        execution.task = asyncio.create_task(running)
        # Not in the task itself: one that is cancelled before its first step never does any.
        execution.task.add_done_callback(
            lambda task: self._ended(task, execution, ticket, visitor, place)
        )
        return execution

    def find(self, visitor: Visitor, identifier: str) -> Execution | None:
        """Return an execution of the visitor's, if it is still kept."""
        return self._users[visitor.user].known.get(identifier)

    def of(self, visitor: Visitor) -> Iterable[Execution]:
        """Return the visitor's executions, the newest first."""
        return reversed(self._users[visitor.user].known.values())

    def of_cell(self, key: str, cell: int) -> Execution | None:
        """Return the execution of a cell, by the key of its session. One whose code is still
        looked at before it runs has no number yet."""
        here = self._running.get(key, [])
        return next((each for each in here if each.cell in (cell, 0)), None)

    def running_in(self, visitor: Visitor, session: str) -> Execution | None:
        """Return the execution that runs in a session of the visitor's."""
        for execution in self._users[visitor.user].active.values():
            if execution.session == session and execution.state == "running":
                return execution
        return None

    def active(self) -> list[Execution]:
        """Return those of all users that have not ended."""
        return [each for mine in self._users.values() for each in mine.active.values()]

    async def cancel(self, execution: Execution) -> None:
        """Stop an execution: its cell is interrupted, or does not begin."""
        if execution.state == "running":
            session = self._bell.get(execution.session, user=execution.user)
            if session is not None and session.key == execution.session_key:
                await session.interrupt()
        elif execution.task is not None:
            execution.task.cancel()

    async def cancel_all(self) -> None:
        """Cancel what has not ended: what waits has its record at once, the rest soon."""
        for execution in self.active():
            await self.cancel(execution)

    async def close(self) -> None:
        """Cancel what still runs, and wait until all of it has its record."""
        tasks = [each.task for each in self.active() if each.task is not None]
        for task in tasks:
            task.cancel()
        if waiting := [*tasks, *self._closing]:
            await asyncio.wait(waiting)

    async def _run(
        self, execution: Execution, ticket: Ticket, visitor: Visitor, place: Place
    ) -> None:
        if ticket.turn is not None:
            await ticket.turn
        execution.finish(await self._result(execution, visitor, place))
        self._let_go(execution, ticket, visitor, place)

    async def _result(self, execution: Execution, visitor: Visitor, place: Place) -> bytes:
        session, lost = await self._bell.owned.open(
            visitor.principal(), place.session, place.limits, place.options
        )
        execution.session_key = session.key
        here = self._running.setdefault(session.key, [])
        here.append(execution)
        try:
            if lost:
                execution.notice(LOST)
            return await self._stream(execution, session, lost)
        finally:
            here.remove(execution)
            if not here:
                self._running.pop(session.key, None)

    async def _stream(self, execution: Execution, session: SessionHandle, lost: bool) -> bytes:
        work = execution.work
        events = session.stream(
            work.code, timeout=work.timeout, context=work.context, argv=work.argv
        )
        async with contextlib.aclosing(events):
            async for event in events:
                if event.type == "done":
                    assert event.result is not None
                    result = with_note(event.result, LOST) if lost else event.result
                    return await execution.encoded(result)
                await execution.tell(event)
        raise AssertionError("a stream of events has ended without its result")

    def _ended(
        self,
        task: asyncio.Task[None],
        execution: Execution,
        ticket: Ticket,
        visitor: Visitor,
        place: Place,
    ) -> None:
        """See to it that there is a record of the end, whatever it was."""
        execution.task = None  # where it has failed it knows all that was given
        if task.cancelled():
            execution.cancelled()
        elif (error := task.exception()) is not None:
            execution.fail(error)
        else:
            return  # it has its record
        self._let_go(execution, ticket, visitor, place)

    def _let_go(self, execution: Execution, ticket: Ticket, visitor: Visitor, place: Place) -> None:
        self._users[execution.user].end(execution)
        self._queue.leave(ticket)
        if place.once:
            closing = self._bell.owned.close(visitor.principal(), place.session)
            closed = asyncio.create_task(closing)
            self._closing.add(closed)
            closed.add_done_callback(self._closing.discard)
