"""The contexts of calls that clients make directly, without a session.

The gateway counts, remembers approvals and keeps connections by session. A client that calls
directly has none, so its connection stands for one; like a session it ends with the connection, or
idle.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from divingbell.gateway.context import CallContext, key_of
from divingbell.gateway.gateway import Gateway
from divingbell.principal import Principal
from divingbell.surfaces.mcp.client_channel import ClientChannel


class CallContexts:
    """The contexts of direct calls, by principal; those of idle principals are forgotten."""

    def __init__(self, gateway: Gateway, idle_timeout: float) -> None:
        self._gateway = gateway
        self._idle_timeout = idle_timeout
        self._last: dict[Principal, float] = {}
        self._places: dict[Principal, asyncio.Semaphore] = {}
        """Room for the calls of each that run at once; more of them wait, as those of code do."""
        self._runs = itertools.count(1)

    @asynccontextmanager
    async def begin(self, channel: ClientChannel) -> AsyncIterator[CallContext]:
        """Yield the context of one call for the gateway, for the time of the call."""
        now = time.monotonic()
        idle = [one for one, last in self._last.items() if last < now - self._idle_timeout]
        await self._forget(idle)
        self._last[channel.principal] = now
        asker = channel if channel.can_be_asked else None
        # Each call is a run of its own: there is no cell that they belong to together.
        session, key = session_of(channel.principal), _key(channel.principal)
        context = CallContext(channel.principal, session, key, "client", next(self._runs), asker)
        most = self._gateway.calls_at_once
        try:
            async with self._places.setdefault(channel.principal, asyncio.Semaphore(most)):
                yield context
        finally:
            self._gateway.end_run(context.key)

    async def leave(self, connection: str) -> None:
        """Forget a connection that has ended."""
        await self._forget([one for one in self._last if one.conversation == connection])

    async def _forget(self, principals: list[Principal]) -> None:
        for principal in principals:
            del self._last[principal]
            self._places.pop(principal, None)
        for principal in principals:
            await self._gateway.forget(_key(principal))


def session_of(principal: Principal) -> str:
    """Return the name that stands for a session where a client calls without one."""
    return f"direct:{principal.user}:{principal.conversation}"


def _key(principal: Principal) -> str:
    return key_of(principal, session_of(principal))
