"""Clients that call upstream tools directly, as the gateway's door sees them.

The door counts, remembers approvals and keeps connections by session. A client that calls directly
has none, so its connection stands for one; like a session it ends with the connection, or idle.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from divingbell.calls import Visit, key_of
from divingbell.gateway.gateway import Gateway
from divingbell.models import Event
from divingbell.surfaces.mcp.callers import Caller
from divingbell.surfaces.mcp.person import Person


class Visits:
    """Who is there, and since when nothing was heard of them."""

    def __init__(self, gateway: Gateway, idle_timeout: float) -> None:
        self._gateway = gateway
        self._idle_timeout = idle_timeout
        self._last: dict[Caller, float] = {}
        self._places: dict[Caller, asyncio.Semaphore] = {}
        """Room for the calls of each that run at once; more of them wait, as those of code do."""
        self._runs = itertools.count(1)

    @asynccontextmanager
    async def begin(self, person: Person) -> AsyncIterator[Visit]:
        """What the door needs to know about one call, for the time of the call."""
        now = time.monotonic()
        idle = [one for one, last in self._last.items() if last < now - self._idle_timeout]
        await self._forget(idle)
        self._last[person.caller] = now
        asker = person if person.can_be_asked else None
        # Each call is a run of its own: there is no cell that they belong to together.
        session, run = session_of(person.caller), next(self._runs)
        user = person.caller.user
        visit = Visit(session, user, run, asker, _to_nobody, key_of(user, session))
        most = self._gateway.calls_at_once
        try:
            async with self._places.setdefault(person.caller, asyncio.Semaphore(most)):
                yield visit
        finally:
            self._gateway.end_run(visit.key)

    async def leave(self, connection: str) -> None:
        """A connection has ended."""
        await self._forget([one for one in self._last if one.connection == connection])

    async def _forget(self, callers: list[Caller]) -> None:
        for caller in callers:
            del self._last[caller]
            self._places.pop(caller, None)
        for caller in callers:
            await self._gateway.forget(key_of(caller.user, session_of(caller)))


def session_of(caller: Caller) -> str:
    """What stands for a session where a client calls without one."""
    return f"direct:{caller.user or ''}:{caller.connection}"


def _to_nobody(event: Event) -> None:
    """Progress and log messages go to the client another way."""
