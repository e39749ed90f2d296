"""Calls on their way over one connection, and whose a server's question is."""

import asyncio
import contextlib
from collections.abc import Iterator

from divingbell.gateway.callers import Caller


class Flight:
    """A call on its way. Its clock stands still while a person is asked."""

    def __init__(self, caller: Caller | None) -> None:
        self.caller = caller
        self.questions = 0
        """How many there were so far."""
        self.telling = 0
        """Messages to the caller that it has not taken yet."""
        self.clock: asyncio.Timeout | None = None
        self._asking = 0
        self._left = 0.0

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Count a message for as long as the caller takes it."""
        self.telling += 1
        try:
            yield
        finally:
            self.telling -= 1

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Stop the clock for the time of the block."""
        now = asyncio.get_running_loop().time
        clock = self.clock
        if self._asking == 0 and clock is not None and (end := clock.when()) is not None:
            self._left = end - now()
            clock.reschedule(None)
        self._asking += 1
        self.questions += 1
        try:
            yield
        finally:
            self._asking -= 1
            if self._asking == 0 and clock is not None and clock is self.clock:
                # The call may be over already, and its clock with it.
                with contextlib.suppress(RuntimeError):
                    clock.reschedule(now() + self._left)


class Flights:
    """All calls on their way over one connection."""

    def __init__(self) -> None:
        self._flights: dict[int, Flight] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._flights)

    @contextlib.contextmanager
    def begin(self, caller: Caller | None) -> Iterator[Flight]:
        flight = Flight(caller)
        self._next += 1
        key = self._next
        self._flights[key] = flight
        try:
            yield flight
        finally:
            del self._flights[key]
            flight.clock = None

    def only(self) -> Flight | None:
        """The flight that an unsolicited message belongs to, if there can be no doubt whose it is.

        In the older protocol a server's question names no call. With calls of two sessions on
        their way it could be shown to the wrong person, so it is shown to nobody.
        """
        found: Flight | None = None
        for flight in self._flights.values():
            if flight.caller is None:
                continue
            if found is not None and not _same(found.caller, flight.caller):
                return None
            found = flight
        return found


def _same(one: Caller | None, other: Caller | None) -> bool:
    if one is other:
        return True
    return (
        one is not None
        and other is not None
        and one.session is not None
        and one.session == other.session
    )
