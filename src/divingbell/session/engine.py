"""The engine: opens, finds and closes sessions, keeps some ready, never has more than it may."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from divingbell import logs
from divingbell.border.border import Border, OpenBorder
from divingbell.errors import CapacityError, InvalidInput, SessionClosed
from divingbell.host import requirements
from divingbell.journal.journal import Journal
from divingbell.journal.readings import Readings
from divingbell.models import Limits
from divingbell.principal import Principal
from divingbell.review.reviewer import Reviewer
from divingbell.sandbox.base import Backend
from divingbell.session.accounted import Ledgers, SessionServices
from divingbell.session.calls import ToolGateway
from divingbell.session.copies import Copies
from divingbell.session.hints import Hints
from divingbell.session.interpreter import Interpreter
from divingbell.session.local import LocalSession
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions, check_name, checked_labels
from divingbell.session.pool import Pool
from divingbell.session.session import Session
from divingbell.session.user_rates import UserRates
from divingbell.session.user_shares import UserShares
from divingbell.settings import config
from divingbell.settings.config import Settings

IDLE_CHECK = 1.0
ACCOUNT_EVERY = 1.0
"""Seconds between two looks at the CPU time of sessions, where a rate limits it. Measured: a look
at one takes 0.01 ms."""

READ_AT_ONCE = 20
"""Sessions that are read without letting others run: 0.2 ms."""

SHARE_EVERY = 0.5
"""Seconds between two looks at which sessions compute. Measured: 0.01 ms for a session, and as much
again to weigh it."""

log = logs.logger("divingbell")
Key = tuple[str, str]
"""The name of a user, and the id of a session."""


class _Opening:
    """Lets those who open the same id in one after another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Engine:
    """The sessions of one Divingbell, in front of one backend."""

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        gateway: ToolGateway | None = None,
        journal: Journal | None = None,
        border: Border | None = None,
        ledgers: Ledgers | None = None,
        guard: LoopGuard | None = None,
    ) -> None:
        self._settings = settings
        self._backend = backend
        self._gateway = gateway
        self._copies = Copies(settings.copy_after)
        self._services = SessionServices(
            settings.interrupt_grace,
            self._copies,
            Hints(
                requirements.at_hand(settings.packages),
                gateway,
                tuple(settings.mounts),
                has_tokens=settings.privacy not in (None, "off"),
            ),
            journal or Journal(),
            border or OpenBorder(),
            ledgers,
            guard or LoopGuard(),
            Reviewer(settings.review),
            UserRates(settings.policy),
            settings.idle_timeout,
        )
        self._sessions: dict[Key, LocalSession] = {}
        self._holders: dict[str, set[Session]] = {}
        """By the key of a session, those who hold it."""
        self._openings: dict[Key, _Opening] = {}
        self._places = asyncio.Semaphore(settings.max_sessions)
        self._pool = Pool(
            backend, settings.limits, settings.pool, settings.pool_most, self._places_left
        )
        self._watching: list[asyncio.Task[None]] = []
        self._made = 0
        """Sessions that had to be made when they were opened."""
        self._stopped = False

    async def start(self) -> None:
        await self._backend.start()
        looks = (self._end_idle_sessions(), self._share_processors())
        self._watching = [asyncio.create_task(look) for look in looks]
        if self._services.rates.counts_cpu:
            self._watching.append(asyncio.create_task(self._account()))
        self._pool.start()

    async def stop(self) -> None:
        """End everything."""
        self._stopped = True
        try:
            for task in self._watching:
                task.cancel()
            if self._watching:
                await asyncio.wait(self._watching)
            await self._copies.stop()
            closing = [session.close("Divingbell was closed") for session in self._open()]
            outcomes = await asyncio.gather(*closing, self._pool.stop(), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    log.error("a session was not closed well", exc_info=outcome)
        finally:
            await self._backend.stop()

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

    def _open(self) -> list[LocalSession]:
        return list(self._sessions.values())

    async def open(
        self,
        identifier: str | None,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None = None,
        door: ToolGateway | None = None,
    ) -> Session:
        """Return the user's session of that id, making it where there is none.

        The same id of another user is another session. `changes` are limits; for a session that
        is open already they and the options have no effect, and the log says so once. `door`
        answers the calls of a session that is made, in place of the gateway.

        Raises:
            InvalidInput: the id or the user is no text, or one that can't be used.
            ConfigError: a limit can't be used.
            CapacityError: all places were taken for `open_timeout` seconds.
            SandboxUnavailable: no sandbox could be made.
        """
        _check_names(identifier, principal)
        key = (principal.user, identifier or f"session-{secrets.token_hex(16)}")
        opening = self._openings.setdefault(key, _Opening())
        opening.waiting += 1
        try:
            async with opening.lock:
                session = self._sessions.get(key)
                if session is None or session.closed:
                    session = await self._make(key[1], principal, changes, options, door)
                else:
                    session.joined(self._ignored(session, changes, options))
                held = Session(session, opened=True)
                self._holders.setdefault(session.key, set()).add(held)
                return held
        finally:
            opening.waiting -= 1
            if not opening.waiting:
                self._openings.pop(key, None)

    def _ignored(
        self, session: LocalSession, changes: Mapping[str, Any], options: SessionOptions | None
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
            if not holders:
                await session.close()

    async def _make(
        self,
        identifier: str,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None,
        door: ToolGateway | None,
    ) -> LocalSession:
        key = (principal.user, identifier)
        limits = config.with_limits(self._settings.limits, changes)
        try:
            async with asyncio.timeout(self._settings.open_timeout):
                await self._places.acquire()
        except TimeoutError:
            raise CapacityError(
                f"all {self._settings.max_sessions} sessions are in use and none was closed within "
                f"{self._settings.open_timeout:g} s: close one, or raise max_sessions"
            ) from None
        try:
            interpreter = await self._pool.take(limits)
            if interpreter is None:
                interpreter = await self._prepare(limits)
                self._made += 1
        except BaseException:
            self._places.release()
            raise
        if principal.client == "library":
            principal = replace(principal, conversation=identifier)
        session = LocalSession(
            identifier,
            principal,
            interpreter,
            self._services,
            self._prepare,
            lambda closed: self._forget(key, closed),
            door or self._gateway,
            options,
        )
        self._sessions[key] = session
        return session

    async def read(self) -> Readings:
        """Return how many sessions there are and what they hold, read some at a time."""
        busy = copies = memory = 0
        sessions = self._open()
        for number, session in enumerate(sessions, 1):
            busy += session.busy
            copies += session.copied_cell is not None
            memory += session.sandbox.consumption().memory or 0
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return Readings(
            busy=busy,
            idle=len(sessions) - busy,
            memory=memory,
            pool=len(self._pool),
            from_pool=self._pool.taken,
            made=self._made,
            copies=copies,
            copies_made=self._copies.made,
        )

    def _forget(self, key: Key, session: LocalSession) -> None:
        self._places.release()
        self._holders.pop(session.key, None)
        if self._sessions.get(key) is session:
            del self._sessions[key]

    async def _prepare(self, limits: Limits) -> Interpreter:
        if self._stopped:
            raise SessionClosed("Divingbell has been closed")
        interpreter = Interpreter(await self._backend.create(limits))
        await interpreter.start()
        return interpreter

    def _places_left(self) -> int:
        return self._settings.max_sessions - len(self._sessions)

    async def _end_idle_sessions(self) -> None:
        while True:
            await asyncio.sleep(min(IDLE_CHECK, self._settings.idle_timeout / 4))
            for session in self._open():
                allowed = session.idle_timeout
                if time.monotonic() - session.last_used > allowed and not session.in_use:
                    try:
                        await session.close(f"it was idle for {allowed:g} s")
                    except Exception:  # one that can't be closed must not keep the others alive
                        log.exception("session %s was not closed well", session.id)

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

    async def _share_processors(self) -> None:
        """Let sessions of one user that compute at the same time have together what one has."""
        shares = UserShares()
        while True:
            await asyncio.sleep(SHARE_EVERY)
            sessions = [(session.principal, session.sandbox) for session in self._open()]
            try:
                for _ in shares.look(sessions):
                    await asyncio.sleep(0)
            except Exception:  # it is looked again
                log.exception("the processors were not shared by users")


def _check_names(identifier: str | None, principal: Principal) -> None:
    check_name("id", identifier)
    check_name("user", principal.user or None)  # of nobody it is empty
