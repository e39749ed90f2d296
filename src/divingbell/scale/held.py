"""A session that a node holds, with those who hold it: fronts come and go, and it stays."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from divingbell.scale.cluster import Held
from divingbell.scale.line import Line
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
    heard: bool = False
    """Whether a front has it."""


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
    outcome: Outcome | None = None
    told: SessionState | None = None

    @property
    def key(self) -> str:
        return self.session.key

    @property
    def held(self) -> Held:
        session = self.session
        return Held(session.principal.user, session.id, session.key, self.number)

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
