"""Owned sessions: opened for principals, kept, counted. No user can name another one's."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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


class SharedSessions(Protocol):
    """The sessions of a cluster, in which other processes hold some of the same users."""

    async def ids_of(self, user: str) -> list[str]:
        """Return the ids of the user's sessions, whoever has opened them."""

    async def join(self, id: str, principal: Principal) -> SessionHandle | None:
        """Return a session that is open, None if it has ended."""


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
        self.shared: SharedSessions | None = None
        """Where this is not the only process in which these users come in."""

    async def look(self, principal: Principal) -> None:
        """Join what the principal has opened through other processes, where there are some."""
        if self.shared is None:
            return
        own = self._key(principal, DEFAULT_SESSION)[1]
        for identifier in await self.shared.ids_of(principal.user):
            key = principal.user, identifier
            if key not in self._held and (identifier == own or _NAME.fullmatch(identifier)):
                session = await self.shared.join(identifier, principal)
                if session is not None:
                    connection = principal.conversation if identifier == own else None
                    self._held.setdefault(key, _Held(session, connection))

    async def _count(self, key: _Key) -> int:
        """Return how many sessions the user has besides this one."""
        if self.shared is None:
            return sum(user == key[0] for user, _ in self._held)
        return len(set(await self.shared.ids_of(key[0])) - {key[1]})

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
            if await self._count(key) >= MAX_SESSIONS:
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
        """End every session; of those that are shared, only what connections to here had."""
        shared = self.shared is not None
        await self._end([key for key, held in self._held.items() if held.connection or not shared])
        self._held.clear()

    async def _end(self, keys: list[_Key]) -> None:
        gone = [self._held.pop(key).session for key in keys]
        closing = (session.close("its client has left") for session in gone)
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("a session was not closed well", exc_info=outcome)

    def _key(self, principal: Principal, name: str) -> _Key:
        if name != DEFAULT_SESSION:
            return principal.user, name
        # Without connections it is the user's own, through whichever process they come; nobody
        # can name it, as no name has a colon.
        random = secrets.token_hex(16) if principal.conversation else DEFAULT_SESSION
        return principal.user, self._secret.setdefault(principal, f"mcp:{random}")

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
