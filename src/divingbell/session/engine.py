"""The engine: opens, finds and closes sessions, keeps some ready, never has more than it may."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from divingbell import logs
from divingbell.border.border import Border
from divingbell.errors import CapacityError, SessionClosed
from divingbell.journal.journal import Journal
from divingbell.journal.readings import Readings
from divingbell.models import Limits
from divingbell.principal import Principal
from divingbell.sandbox.base import Backend
from divingbell.session.accounted import Ledgers
from divingbell.session.calls import ToolGateway
from divingbell.session.hints import Hints
from divingbell.session.interpreter import Interpreter
from divingbell.session.keeper import Key, SessionKeeper
from divingbell.session.local import LocalSession
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions
from divingbell.session.pool import Pool
from divingbell.session.user_shares import UserShares
from divingbell.settings import config
from divingbell.settings.config import Settings

IDLE_CHECK = 1.0
READ_AT_ONCE = 20
"""Sessions that are read without letting others run: 0.2 ms."""

SHARE_EVERY = 0.5
"""Seconds between two looks at which sessions compute. Measured: 0.01 ms for a session, and as much
again to weigh it."""

log = logs.logger("divingbell")


class Engine(SessionKeeper[LocalSession]):
    """The sessions of one process, in front of one backend."""

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        gateway: ToolGateway | None = None,
        journal: Journal | None = None,
        border: Border | None = None,
        ledgers: Ledgers | None = None,
        guard: LoopGuard | None = None,
        hints: Hints | None = None,
    ) -> None:
        super().__init__(settings, gateway, journal, border, ledgers, guard, hints)
        self._backend = backend
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

    async def _make(
        self,
        identifier: str,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None,
        door: ToolGateway | None,
        key: str | None,
    ) -> LocalSession:
        place = (principal.user, identifier)
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
            lambda closed: self._free(place, closed),
            door or self._gateway,
            options,
            key,
        )
        self._sessions[place] = session
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

    def _free(self, place: Key, session: LocalSession) -> None:
        self._places.release()
        self._forget(place, session)

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
