"""A node: sessions on this machine, for fronts that may be elsewhere.

It has an engine, a backend, a pool; and no server, no rule and no secret but its own, with which
fronts prove that they may ask. It does not know who places sessions: whom it asks whether they are
still its own is given to it.
"""

import asyncio
import secrets
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from divingbell import logs
from divingbell.errors import CapacityError, DivingbellError, SandboxUnavailable
from divingbell.host import descriptors
from divingbell.journal.events import JournalEvent, SessionEnded
from divingbell.journal.journal import Journal
from divingbell.parts import Home, make_backend
from divingbell.sandbox import registry
from divingbell.sandbox.auto import AutoBackend
from divingbell.sandbox.base import Backend
from divingbell.scale import forms, greeting
from divingbell.scale.cluster import Directory, Held, NodeAddress
from divingbell.scale.door import LineDoor
from divingbell.scale.held import HeldSession
from divingbell.scale.line import GIVEN_UP, Line
from divingbell.scale.listener import Listener
from divingbell.scale.requests import Requests
from divingbell.scale.stumbles import Stumbles
from divingbell.session.engine import Engine
from divingbell.settings.config import Settings
from divingbell.settings.policy import Policy
from divingbell.settings.privacy import PrivacyRules
from divingbell.shares import loop_thread

log = logs.logger("divingbell")

TICK = 0.5
"""Seconds between two looks: whether this process has hung, and what of sessions has changed."""
ASK_AGAIN = 1.0
"""Seconds after which a directory is asked again that did not answer."""
AT_ONCE = 20
"""Sessions that are looked at without letting others run."""


def settings_of_node(settings: Settings) -> Settings:
    """Return the settings that a node needs: no server, no rule, nothing that is kept."""
    return replace(
        settings,
        backend=settings.node_backend,
        mcp_config="",
        servers=(),
        policy=Policy(),
        privacy="off",
        privacy_rules=PrivacyRules(),
        audit="off",
        metrics="off",
        traces="off",
        skills="off",
    )


class Node:
    """A node of a cluster, in this process and on its event loop."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        *,
        directory: Directory | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        secret: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Nothing is started yet. `secret` is made where none is given.

        Raises:
            ConfigError: the backend is not there or below the minimum, or fronts elsewhere could
                reach the node in the clear.
        """
        self._settings = settings_of_node(settings)
        registry.check(self._settings)
        greeting.check_walls(host, tls)
        self.name = name
        self.sessions: dict[str, HeldSession] = {}
        self.door = LineDoor(self._front_of)
        self._directory = directory
        self._host, self._port, self._tls = host, port, tls
        self._secret = secret or secrets.token_hex(32)
        self._progress = progress or log.info
        self._requests = Requests(self)
        self._listener = Listener(
            name, self._secret, self._requests.begin, self._requests.heard, self._lost
        )
        self._journal = Journal()
        self._undo = AsyncExitStack()
        self._draining = False
        self._one_ended = asyncio.Event()
        self._refuse_before = 0
        self._doubtful = False
        """Whether somebody may have given this node up, and it has yet to ask."""
        self._asking: asyncio.Future[None] | None = None
        self._ticked = _clock()
        self._telling: set[asyncio.Task[None]] = set()
        self._backend: Backend | None = None

    async def start(self) -> NodeAddress:
        """Start it; return where fronts find it.

        Raises:
            SandboxUnavailable, ProfileError: this machine can't run sessions.
            OSError: the port can't be listened at.
        """
        loop_thread.go_first()
        descriptors.allow_for(self._settings.max_sessions + self._settings.pool)
        async with AsyncExitStack() as undo:
            home = Home()
            undo.callback(home.close)
            self.servers = home.servers
            self._backend = make_backend(self._settings, self._progress, home.servers.path, None)
            self.engine = Engine(
                self._settings, self._backend, self.door, self._journal, hints=Stumbles()
            )
            undo.push_async_callback(self.engine.stop)
            await self.engine.start()
            undo.callback(self._journal.watch(self._note))
            undo.push_async_callback(self._requests.stop)
            port = await self._listener.listen(self._host, self._port, self._tls, undo)
            watching = asyncio.create_task(self._watch())
            undo.callback(watching.cancel)
            self._undo = undo.pop_all()
        return NodeAddress(self.name, self._host, port, self._secret)

    async def stop(self) -> None:
        """End every session, and all that was started. May be called again."""
        await self._undo.aclose()
        if self._telling:
            await asyncio.wait(self._telling, timeout=GIVEN_UP)

    async def drain(self) -> None:
        """Open no session any more; return when those that are open have ended."""
        self._draining = True
        while self.sessions:
            self._one_ended.clear()
            await self._one_ended.wait()

    def report(self, refuse_before: int = 0) -> dict[str, Any]:
        """Return what is here. Sessions are made from now on only for placings of at least that
        number: who gave out earlier ones has forgotten them."""
        self._refuse_before = max(self._refuse_before, refuse_before)
        held = list(self.sessions.values())
        places = self._settings.max_sessions
        backend = self._backend
        name = backend.name if isinstance(backend, AutoBackend) else self._settings.backend
        return {
            "name": self.name,
            "held": [each.held for each in held],
            "places": places,
            "free_places": max(0, places - len(held)),
            "free_memory": _memory("MemAvailable"),
            "memory": _memory("MemTotal"),
            "busy": sum(each.session.busy for each in held),
            "backend": name,
            "versions": greeting.versions(),
            "draining": self._draining,
        }

    # Lines

    def _lost(self, line: Line, reason: str) -> None:
        for held in self.sessions.values():
            held.leave(line)
        if not line.goodbye and reason != "it was closed":
            log.info("%s", reason)
            self._doubtful = self._doubtful or self._directory is not None

    def _front_of(self, key: str) -> Line | None:
        held = self.sessions.get(key)
        return None if held is None else held.answering()

    # Sessions (divingbell.scale.requests.Placed)

    def check_may_make(self, number: int) -> bool:
        if self._draining:
            raise SandboxUnavailable(f"the node {self.name} is being drained: it opens no sessions")
        if len(self.sessions) >= self._settings.max_sessions and not self._settings.open_timeout:
            raise CapacityError(f"the node {self.name} has no place left")
        return number >= self._refuse_before

    def _note(self, event: JournalEvent) -> None:
        """Tell all who have to know that a session has ended."""
        if not isinstance(event, SessionEnded):
            return
        held = self.sessions.pop(event.key, None)
        if held is None:
            return
        held.drop()
        self._one_ended.set()
        for line in held.holders:
            line.tell({"op": "ended", "key": event.key, "reason": event.reason[:500]})
        if self._directory is not None:
            told = asyncio.create_task(self._tell_directory(self._directory, held.held))
            self._telling.add(told)
            told.add_done_callback(self._telling.discard)

    async def _tell_directory(self, directory: Directory, held: Held) -> None:
        try:
            await directory.gone(held.user, held.id, held.number)
        except Exception:  # one that starts anew asks for a report, which says the same
            log.warning("the directory was not told that a session has ended", exc_info=True)

    async def _watch(self) -> None:
        """Look whether this process has hung, and tell fronts what they show of sessions."""
        while True:
            await asyncio.sleep(TICK)
            self._look_at_clock()
            for number, held in enumerate(list(self.sessions.values()), 1):
                if not held.session.closed and held.holders:
                    before = held.told
                    state = held.state()
                    if before != state:
                        form = forms.of(state)
                        for line in held.holders:
                            line.tell({"op": "state", "key": held.key, "state": form})
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    # Whose the sessions are

    def _look_at_clock(self) -> None:
        now = _clock()
        if now - self._ticked > GIVEN_UP:
            self._doubtful = True
        self._ticked = now

    async def own(self) -> None:
        self._look_at_clock()
        while self._doubtful:
            if self._asking is None:
                self._asking = asyncio.ensure_future(self._ask())
            await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        """Ask which sessions are still this node's own; end the others."""
        try:
            self._doubtful = False
            held = [each.held for each in self.sessions.values()]
            mine = await self._still_mine(held)
            lost = [self.sessions.get(each.key) for each in held if each not in mine]
            why = "its node had been given up, and it is elsewhere now"
            await asyncio.gather(*(each.session.close(why) for each in lost if each is not None))
        except BaseException:
            self._doubtful = True
            raise
        finally:
            self._asking = None

    async def _still_mine(self, held: Sequence[Held]) -> Sequence[Held]:
        if self._directory is None or not held:
            return ()
        while True:
            try:
                return await self._directory.still_mine(self.name, held)
            except DivingbellError:
                raise
            except Exception:  # until it is there again nothing is answered
                log.warning("the directory does not answer", exc_info=True)
                await asyncio.sleep(ASK_AGAIN)


def _clock() -> float:
    """Seconds that go on while a process, or its machine, is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _memory(name: str) -> int:
    """Return bytes of this machine, as the kernel counts them."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0
