"""The queue of cells: so many at once, so many of one user, and users in turn."""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from divingbell.amounts import amount
from divingbell.errors import CapacityError
from divingbell.surfaces.http.problems import AGAIN, Refused


@dataclass(frozen=True, slots=True)
class Room:
    """How many cells run at once, and how many wait."""

    at_once: int = 64
    of_user: int = 8
    waiting: int = 512
    waiting_of_user: int = 32


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue; `leave` must be called, however it ends."""

    user: str
    session: str
    """The session that it is for: of each one runs at a time."""
    tell: Callable[[int], None]
    """Hears the place, from 1 on, whenever that changes."""
    turn: asyncio.Future[None] | None = None
    place: int = 0
    running: bool = False


@dataclass(eq=False, slots=True)
class _User:
    waiting: deque[Ticket] = field(default_factory=deque)
    running: int = 0


class Queue:
    """Lets cells begin: of each user so many, of each session one, and users take turns."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._users: dict[str, _User] = {}
        """In the order of their turns."""
        self._sessions: set[tuple[str, str]] = set()
        """Those in which a cell runs."""
        self.running = 0
        self.waiting = 0
        self.draining = False
        """Whether nobody may enter any more, because the server ends."""
        self.closed = False
        """Whether nobody is let in any more."""

    @contextlib.asynccontextmanager
    async def turn(self, user: str, session: str) -> AsyncIterator[None]:
        """Wait for the turn of a cell, and have it until the end of the block.

        Raises:
            CapacityError: too many wait already, or the server ends.
        """
        try:
            ticket = self.enter(user, session)
        except Refused as refusal:
            raise CapacityError(str(refusal)) from None
        try:
            if ticket.turn is not None:
                await _let_in(ticket.turn)
            yield
        finally:
            self.leave(ticket)

    def close(self) -> None:
        """Let nobody in any more; those who wait are refused."""
        self.draining = self.closed = True
        for user in self._users.values():
            for ticket in user.waiting:
                if ticket.turn is not None and not ticket.turn.done():
                    ticket.turn.set_exception(ending())

    def enter(
        self, user: str, session: str, tell: Callable[[int], None] = lambda place: None
    ) -> Ticket:
        """Return a ticket, which may be let in already.

        Raises:
            Refused: too many wait, of this user or of all; or the server ends.
        """
        if self.draining:
            raise ending()
        ticket = Ticket(user, session, tell)
        known = self._users.setdefault(user, _User())
        if self.running < self._room.at_once and not self.waiting and self._may(known, ticket):
            self._let_in(known, ticket)
            return ticket
        if len(known.waiting) >= self._room.waiting_of_user:
            words = f"{amount(len(known.waiting), 'cell')} of yours wait already: wait for some"
            raise Refused(429, "queue_full", words).retry_after(AGAIN)
        if self.waiting >= self._room.waiting:
            words = f"{amount(self.waiting, 'cell')} wait already: try again soon"
            raise Refused(503, "queue_full", words).retry_after(AGAIN)
        ticket.turn = asyncio.get_running_loop().create_future()
        known.waiting.append(ticket)
        self.waiting += 1
        self._advance()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give a place back, in the queue or among those that run. May be called again."""
        known = self._users.get(ticket.user)
        if known is None:
            return
        if ticket.running:
            ticket.running = False
            known.running -= 1
            self.running -= 1
            self._sessions.discard((ticket.user, ticket.session))
        elif ticket in known.waiting:
            known.waiting.remove(ticket)
            self.waiting -= 1
        if self.waiting:
            self._advance()
        if not known.running and not known.waiting:
            self._users.pop(ticket.user, None)

    def _may(self, user: _User, ticket: Ticket) -> bool:
        is_free = (ticket.user, ticket.session) not in self._sessions
        return is_free and user.running < self._room.of_user

    def _let_in(self, user: _User, ticket: Ticket) -> None:
        ticket.running = True
        user.running += 1
        self.running += 1
        self._sessions.add((ticket.user, ticket.session))
        if ticket.turn is not None and not ticket.turn.done():
            ticket.turn.set_result(None)

    def _advance(self) -> None:
        """Let in as many as there are places for, and tell the others where they are."""
        if self.closed:
            return
        moved = True
        while moved and self.waiting and self.running < self._room.at_once:
            moved = False
            for name, user in list(self._users.items()):
                ticket = next((each for each in user.waiting if self._may(user, each)), None)
                if ticket is not None and self.running < self._room.at_once:
                    user.waiting.remove(ticket)
                    self.waiting -= 1
                    self._let_in(user, ticket)
                    self._users[name] = self._users.pop(name)  # to the end of the turns
                    moved = True
        self._tell_places()

    def _tell_places(self) -> None:
        """Tell each its place. In each round of turns one of every user is let in who has any."""
        users = self._users.values()
        longest = max((len(user.waiting) for user in users), default=0)
        rounds = [0] * longest
        for user in users:
            for number in range(len(user.waiting)):
                rounds[number] += 1
        places = [1, *(1 + count for count in itertools.accumulate(rounds))]
        for user in users:
            for number, ticket in enumerate(user.waiting):
                place = places[number]
                places[number] += 1
                if place != ticket.place:
                    ticket.place = place
                    ticket.tell(place)


async def _let_in(turn: asyncio.Future[None]) -> None:
    try:
        await turn
    except Refused as refusal:
        raise CapacityError(str(refusal)) from None


def ending() -> Refused:
    """Return what is said to those who come too late."""
    words = "the server is about to end: try again when it is back"
    return Refused(503, "draining", words).retry_after(AGAIN)
