"""The keeper of sessions: finds and opens them, and knows who holds each, wherever they run."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from divingbell import logs
from divingbell.border.border import Border, OpenBorder
from divingbell.errors import InvalidInput
from divingbell.host import requirements
from divingbell.journal.journal import Journal
from divingbell.journal.readings import Readings
from divingbell.principal import Principal
from divingbell.review.reviewer import Reviewer
from divingbell.session.accounted import AccountedSession, Ledgers, SessionServices
from divingbell.session.calls import ToolGateway
from divingbell.session.copies import Copies
from divingbell.session.hints import Hints
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions, check_name, checked_labels
from divingbell.session.session import Session
from divingbell.session.user_rates import UserRates
from divingbell.settings import config
from divingbell.settings.config import Settings

ACCOUNT_EVERY = 1.0
"""Seconds between two looks at the CPU time of sessions, where a rate limits it. Measured: a look
at one takes 0.01 ms."""

log = logs.logger("divingbell")
Key = tuple[str, str]
"""The name of a user, and the id of a session."""
Kept = TypeVar("Kept", bound=AccountedSession)


class _Opening:
    """Lets those who open the same id in one after another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class SessionKeeper(ABC, Generic[Kept]):
    """The sessions of one Divingbell."""

    def __init__(
        self,
        settings: Settings,
        gateway: ToolGateway | None = None,
        journal: Journal | None = None,
        border: Border | None = None,
        ledgers: Ledgers | None = None,
        guard: LoopGuard | None = None,
        hints: Hints | None = None,
    ) -> None:
        self._settings = settings
        self._gateway = gateway
        self._copies = Copies(settings.copy_after)
        hints = hints or Hints(
            requirements.at_hand(settings.packages),
            gateway,
            tuple(settings.mounts),
            has_tokens=settings.privacy not in (None, "off"),
        )
        self._services = SessionServices(
            settings.interrupt_grace,
            self._copies,
            hints,
            journal or Journal(),
            border or OpenBorder(),
            ledgers,
            guard or LoopGuard(),
            Reviewer(settings.review),
            UserRates(settings.policy),
            settings.idle_timeout,
        )
        self._sessions: dict[Key, Kept] = {}
        self._holders: dict[str, set[Session]] = {}
        """By the key of a session, those who hold it."""
        self._conversations: dict[str, Callable[[], None]] = {}
        """By the key of a session, what tells the border that its conversation has lost it."""
        self._openings: dict[Key, _Opening] = {}

    @abstractmethod
    async def start(self) -> None:
        """Get ready.

        Raises:
            SandboxUnavailable, ProfileError, ConfigError: what keeps it from it.
        """

    @abstractmethod
    async def stop(self) -> None:
        """End what there is of it."""

    @abstractmethod
    async def read(self) -> Readings:
        """Return how many sessions there are and what they hold."""

    @abstractmethod
    async def _make(
        self,
        identifier: str,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None,
        door: ToolGateway | None,
        key: str | None,
    ) -> Kept:
        """Return a session that this Divingbell does not have yet."""

    def sessions(
        self, user: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions that are open, for somebody who holds none of them.

        With a user those of that user, with labels those that have all of them.

        Raises:
            InvalidInput: the user or the labels can't be any.
        """
        check_name("user", user)
        wanted = checked_labels(labels or {}).items()
        return [
            Session(session)
            for session in self._open()
            if user in (None, session.principal.user) and wanted <= session.labels.items()
        ]

    def find(self, identifier: str, principal: Principal) -> Session | None:
        """Return the user's open session of that id, for somebody who does not hold it.

        Raises:
            InvalidInput: the id or the user is something else than a text.
        """
        _check_names(identifier, principal)
        session = self._sessions.get((principal.user, identifier))
        return None if session is None or session.closed else Session(session)

    def kept(self, user: str, identifier: str) -> Kept | None:
        """Return the session itself, for whoever answers for it."""
        return self._sessions.get((user, identifier))

    def _open(self) -> list[Kept]:
        return list(self._sessions.values())

    async def open(
        self,
        identifier: str | None,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None = None,
        door: ToolGateway | None = None,
        key: str | None = None,
    ) -> Session:
        """Return the user's session of that id, making it where there is none.

        The same id of another user is another session. `changes` are limits; for a session that
        is open already they and the options have no effect, and the log says so once. `door`
        answers the calls of a session that is made, in place of the gateway; `key` is its name,
        where another process has given it one.

        Raises:
            InvalidInput: the id or the user is no text, or one that can't be used.
            ConfigError: a limit can't be used.
            CapacityError: all places were taken for `open_timeout` seconds.
            SandboxUnavailable: no sandbox could be made.
        """
        _check_names(identifier, principal)
        place = (principal.user, identifier or f"session-{secrets.token_hex(16)}")
        opening = self._openings.setdefault(place, _Opening())
        opening.waiting += 1
        try:
            async with opening.lock:
                session = self._sessions.get(place)
                if session is None or session.closed:
                    session = await self._make(place[1], principal, changes, options, door, key)
                    lose = self._services.border.hold(session.principal)
                    self._conversations[session.key] = lose
                else:
                    session.joined(self._ignored(session, changes, options))
                held = Session(session, opened=True)
                self._holders.setdefault(session.key, set()).add(held)
                return held
        finally:
            opening.waiting -= 1
            if not opening.waiting:
                self._openings.pop(place, None)

    def _ignored(
        self, session: Kept, changes: Mapping[str, Any], options: SessionOptions | None
    ) -> list[str]:
        """Return the names of what was asked for and is otherwise in a session that is open."""
        asked = config.with_limits(self._settings.limits, changes)
        ignored = [
            name
            for name, given in changes.items()
            if given is not None and getattr(asked, name) != getattr(session.limits, name)
        ]
        return ignored + (options or SessionOptions()).other_than(session.options)

    async def release(self, session: Session) -> None:
        """Let one holder leave, for once and all; the last one ends the session.

        Raises:
            InvalidInput: who has it did not open it.
        """
        if self._services.guard.forked:
            return  # out of a block that the parent is still in
        if not session._opened:
            raise InvalidInput(
                f"the session {session.id!r} was looked for and not opened, so it can't be let go "
                "of: end it with session.close(), or leave it to those who hold it"
            )
        holders = self._holders.get(session.key, set())
        if session in holders:
            holders.remove(session)
            kept = self.kept(session.principal.user, session.id)
            if not holders and kept is not None and kept.key == session.key:
                await kept.let_go()

    def _forget(self, key: Key, session: Kept) -> None:
        self._holders.pop(session.key, None)
        if (lose := self._conversations.pop(session.key, None)) is not None:
            lose()
        if self._sessions.get(key) is session:
            del self._sessions[key]

    async def _account(self) -> None:
        """Charge users with what their sessions use, also while nobody waits for these."""
        while True:
            await asyncio.sleep(ACCOUNT_EVERY)
            for session in self._open():
                try:
                    session.account()
                except Exception:  # the others are charged all the same
                    log.exception("the CPU time of session %s was not counted", session.id)
                await asyncio.sleep(0)


def _check_names(identifier: str | None, principal: Principal) -> None:
    check_name("id", identifier)
    check_name("user", principal.user or None)  # of nobody it is empty
