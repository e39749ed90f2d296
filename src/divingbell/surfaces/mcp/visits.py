"""Clients that call upstream tools directly, as the gateway's door sees them.

The door counts, remembers approvals and keeps connections by session. A client that calls directly
has none, so its connection stands for one; like a session it ends with the connection, or idle.
"""

import itertools
import time

from divingbell.calls import Visit
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
        self._runs = itertools.count(1)

    async def begin(self, person: Person) -> Visit:
        """Return what the door needs to know about one call."""
        now = time.monotonic()
        idle = [one for one, last in self._last.items() if last < now - self._idle_timeout]
        await self._forget(idle)
        self._last[person.caller] = now
        asker = person if person.can_be_asked else None
        # Each call is a run of its own: there is no cell that they belong to together.
        return Visit(session_of(person.caller), person.user, next(self._runs), asker, _to_nobody)

    async def leave(self, connection: str) -> None:
        """A connection has ended."""
        await self._forget([one for one in self._last if one.connection == connection])

    async def _forget(self, callers: list[Caller]) -> None:
        for caller in callers:
            del self._last[caller]
        for caller in callers:
            await self._gateway.forget(session_of(caller))


def session_of(caller: Caller) -> str:
    """What stands for a session where a client calls without one."""
    return f"direct:{caller.user or ''}:{caller.connection}"


def _to_nobody(event: Event) -> None:
    """Progress and log messages go to the client another way."""
