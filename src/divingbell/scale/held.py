"""A session that a node holds, with those who hold it: fronts come and go, and it stays."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from divingbell.scale.cluster import Held
from divingbell.scale.line import Line, Message
from divingbell.scale.passing import Events
from divingbell.scale.state import SessionState, state_of
from divingbell.session.local import LocalSession
from divingbell.session.session import Session

MAX_KEPT = 4 << 20
"""Bytes of the result of a cell that is kept for a front to come; of a larger one only how it
ended."""


@dataclass(slots=True)
class Outcome:
    """The end of the last cell, for a front that has lost the line while it ran."""

    cell: int
    source: str
    form: "asyncio.Future[tuple[Mapping[str, int], bytes]]"
    """What its result looks like on the line, once it has ended."""
    hear: Callable[[Message], bool]
    """Takes what the front says to the cell while it runs."""
    events: Events | None = None
    """What its front is shown meanwhile, where it wants that."""
    heard: bool = False
    """Whether a front has it."""
    is_awaited: bool = False
    """Whether a front has come and waits for it."""


@dataclass(slots=True)
class HeldSession:
    """A session of a node."""

    session: LocalSession
    number: int
    """The highest number of a placing with which it was opened or joined."""
    holders: dict[Line, Session] = field(default_factory=dict)
    left_behind: list[Session] = field(default_factory=list)
    """What fronts held that are gone without a word: the session waits for others, or is idle."""
    front: Line | None = None
    """The line to whoever runs its cell, or ran the last one."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the names that fronts have for their cells: those that run, and the last that ended."""
    told: SessionState | None = None

    @property
    def key(self) -> str:
        return self.session.key

    @property
    def held(self) -> Held:
        session = self.session
        return Held(session.principal.user, session.id, session.key, self.number)

    @property
    def last(self) -> Outcome | None:
        return next(reversed(self.outcomes.values()), None)

    def begin(self, run: str, outcome: Outcome) -> None:
        """Keep the outcome of a cell that begins, and no longer those of cells that have ended."""
        for name, each in list(self.outcomes.items()):
            if each.form.done():
                self._drop(name)
        self.outcomes[run] = outcome

    def drop(self) -> None:
        """Keep nothing any more: the session has ended."""
        for name in list(self.outcomes):
            self._drop(name)

    def _drop(self, name: str) -> None:
        events = self.outcomes.pop(name).events
        if events is not None:
            events.stop()

    def answering(self) -> Line | None:
        """Return the line to whoever answers calls of its code."""
        if self.front is not None and self.front.lost is None:
            return self.front
        return next((line for line in self.holders if line.lost is None), None)

    def state(self) -> SessionState:
        last_used = time.time() + self.session.last_used - time.monotonic()
        self.told = state_of(self.session, last_used)
        return self.told

    def leave(self, line: Line) -> None:
        """Take it that a front is gone that may have wanted the session to last."""
        if (holder := self.holders.pop(line, None)) is not None:
            self.left_behind.append(holder)
