"""Owned sessions: opened for principals, kept, counted. No user can name another one's."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from divingbell import logs
from divingbell.errors import CapacityError, InvalidInput
from divingbell.principal import Principal
from divingbell.session.base import SessionHandle
from divingbell.session.options import SessionOptions

log = logs.logger("divingbell")

MAX_SESSIONS = 32
"""Sessions of one user at once: one client must not take every place."""
MAX_LOST = 1000
DEFAULT_SESSION = "default"
"""The session of a client that names none: its own, which nobody else can name."""
_Key = tuple[str, str]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The names of sessions, as a pattern."""
_NAME = re.compile(NAME)
Opener = Callable[
    [str, Principal, Mapping[str, Any], SessionOptions | None], Awaitable[SessionHandle]
]
"""Makes a session of that id, with limits and options."""


@dataclass(frozen=True, slots=True)
class _Held:
    session: SessionHandle
    connection: str | None
    """The connection that it ends with; None for one that the client has named."""


class OwnedSessions:
    """Opens sessions for principals, keeps them, and ends them with their connections.

    `open` makes a session of that id, which is released by closing it. `reached` is told which
    sessions a principal can reach, before anything of them is shown to it or given to them.
    """

    def __init__(
        self,
        open: Opener,
        reached: Callable[[Principal, SessionHandle], None],
    ) -> None:
        self._open = open
        self._reached = reached
        self._held: dict[_Key, _Held] = {}
        self._secret: dict[Principal, str] = {}
        """The ids of sessions that clients have without a name: nobody can guess them."""
        self._lost: dict[_Key, None] = {}
        """Sessions that have ended by themselves, which their clients do not know yet."""
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(
        self,
        principal: Principal,
        name: str,
        limits: Mapping[str, Any] | None = None,
        options: SessionOptions | None = None,
    ) -> tuple[SessionHandle, bool]:
        """Return the principal's session of that name, and whether an earlier one was lost.

        Limits and options are for one that is made; see `Engine.open`.

        Raises:
            CapacityError: there are too many.
            SandboxUnavailable: no sandbox could be made.
        """
        # One user at a time waits for a place; the others do not wait for that.
        async with self._locks.setdefault(principal.user, asyncio.Lock()):
            self._sweep(principal.user)
            key = self._key(principal, name)
            held = self._held.get(key)
            if held is not None:
                self._reached(principal, held.session)
                return held.session, False
            if sum(user == principal.user for user, _ in self._held) >= MAX_SESSIONS:
                raise CapacityError(
                    f"you have {MAX_SESSIONS} sessions: end one first, with close_session or, over "
                    "HTTP, with DELETE",
                    of_user=True,
                )
            session = await self._open(key[1], principal, limits or {}, options)
            connection = principal.conversation if name == DEFAULT_SESSION else None
            self._held[key] = _Held(session, connection)
            self._reached(principal, session)
            lost = key in self._lost
            self._lost.pop(key, None)
            return session, lost

    def find(self, principal: Principal, name: str) -> SessionHandle | None:
        """Return the principal's open session of that name, if there is one."""
        held = self._held.get(self._key(principal, name))
        if held is None or held.session.closed:
            return None
        self._reached(principal, held.session)
        return held.session

    def of(self, principal: Principal) -> Iterable[tuple[str, SessionHandle]]:
        """Return the names and sessions that the principal can reach."""
        own = self._secret.get(principal)
        for (user, identifier), held in list(self._held.items()):
            if user == principal.user and not held.session.closed:
                if identifier != own and held.connection is not None:
                    continue
                self._reached(principal, held.session)
                yield (DEFAULT_SESSION if identifier == own else identifier), held.session

    async def close(self, principal: Principal, name: str) -> bool:
        """End a session; return whether there was one."""
        held = self._held.pop(self._key(principal, name), None)
        if held is None or held.session.closed:
            return False
        await held.session.close("its client closed it")
        return True

    async def leave(self, connection: str) -> None:
        """End the sessions that a connection had without naming them."""
        for principal in [
            principal for principal in self._secret if principal.conversation == connection
        ]:
            del self._secret[principal]
        await self._end([key for key, held in self._held.items() if held.connection == connection])

    async def leave_all(self) -> None:
        """End every session."""
        await self._end(list(self._held))

    async def _end(self, keys: list[_Key]) -> None:
        gone = [self._held.pop(key).session for key in keys]
        closing = (session.close("its client has left") for session in gone)
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("a session was not closed well", exc_info=outcome)

    def _key(self, principal: Principal, name: str) -> _Key:
        if name != DEFAULT_SESSION:
            return principal.user, name
        return principal.user, self._secret.setdefault(principal, f"mcp:{secrets.token_hex(16)}")

    def _sweep(self, user: str) -> None:
        """Let go of what has ended by itself, as idle sessions do."""
        for key, held in list(self._held.items()):
            if key[0] == user and held.session.closed:
                del self._held[key]
                self._lost[key] = None
        while len(self._lost) > MAX_LOST:
            del self._lost[next(iter(self._lost))]
        for principal, identifier in list(self._secret.items()):
            key = (user, identifier)
            if principal.user == user and key not in self._held and key not in self._lost:
                del self._secret[principal]


def checked_name(name: str | None) -> str:
    """Return the name of a session.

    Raises:
        InvalidInput: it can't be one.
    """
    if name is None:
        return DEFAULT_SESSION
    if not _NAME.fullmatch(name):
        raise InvalidInput("a session_id takes up to 64 letters, digits, `.`, `_` and `-`")
    return name
