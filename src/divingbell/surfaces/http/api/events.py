"""Events: what happens in all sessions of a user, as one stream for one page."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from starlette.types import ASGIApp

from divingbell.journal.events import (
    ApprovalAnswered,
    CellEnded,
    CellStarted,
    JournalEvent,
    SessionEnded,
    SessionOpened,
)
from divingbell.surfaces.http.api.sessions import described
from divingbell.surfaces.http.event_log import Entry, EventLog
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.pending import Question
from divingbell.surfaces.http.streams import MEDIA_TYPE, Stream
from divingbell.surfaces.http.wire import Nothing

MOST_BYTES = 1 << 20
MOST_EVENTS = 1_000
LOOK_EVERY = 2.0
"""Seconds between two looks at what sessions use."""


async def events(call: Call, given: Nothing) -> ASGIApp:
    """Stream what happens in all sessions of the user, from now on."""
    return Stream(_followed(_Watch(call)))


class _Watch:
    """Takes from the journal what is of one user."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.log = EventLog(MOST_BYTES, MOST_EVENTS)
        self._user = call.visitor.user
        self._seen: dict[str, Any] = {}

    def take(self, event: JournalEvent) -> None:
        match event:
            case SessionOpened() if event.principal.user == self._user:
                self.log.add("session.opened", {"session": event.session})
            case SessionEnded() if event.principal.user == self._user:
                told: dict[str, Any] = {"session": event.session, "reason": event.reason}
                self.log.add("session.ended", told)
            case CellStarted() if event.principal.user == self._user:
                self.log.add("execution.started", self._of_cell(event.key, event.cell))
            case CellEnded() if event.principal.user == self._user:
                status = None if event.result is None else event.result.status
                told = self._of_cell(event.key, event.cell) | {"status": status}
                self.log.add("execution.ended", told)
            case ApprovalAnswered() if event.user == self._user and self._may_approve:
                told = {"id": str(event.approval), "word": event.word}
                self.log.add("approval.answered", told)

    @property
    def _may_approve(self) -> bool:
        return self.call.visitor.may("approve")

    def asked(self, question: Question) -> None:
        name = self._name(question.approval.key) or question.approval.session
        self.log.add("approval.asked", {"approval": question.told(name)})

    def _of_cell(self, key: str, cell: int) -> dict[str, Any]:
        execution = self.call.service.executions.of_cell(key, cell)
        return {
            "session": self._name(key) or "",
            "cell": cell,
            "execution": None if execution is None else execution.id,
        }

    def _name(self, key: str) -> str | None:
        """The name of a session that the user can reach."""
        owned = self.call.service.bell.owned.of(self.call.visitor.principal())
        return next((name for name, session in owned if session.key == key), None)

    async def look(self) -> None:
        """Tell what sessions use, as long as it changes."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for name, session in self.call.service.bell.owned.of(self.call.visitor.principal()):
                told = described(self.call, name, session)
                seen = (told.state, told.cpu_seconds, told.memory, told.cells)
                if self._seen.get(name) != seen:
                    self._seen[name] = seen
                    self.log.add("session.changed", {"session": told})
                await asyncio.sleep(0)


async def _followed(watch: _Watch) -> AsyncGenerator[Entry | None, None]:
    service, user = watch.call.service, watch.call.visitor.user
    with contextlib.ExitStack() as undo:
        undo.callback(service.bell.journal.watch(watch.take))
        if watch.call.visitor.may("approve"):
            undo.enter_context(service.pending.listening(user, watch.asked))
        looking = asyncio.create_task(watch.look())
        undo.callback(looking.cancel)
        watch.log.add("hello", {})
        async with contextlib.aclosing(watch.log.follow()) as entries:
            async for entry in entries:
                yield entry


OPERATIONS = (Operation("GET", "/events", "read", events, media_types=(MEDIA_TYPE,)),)
