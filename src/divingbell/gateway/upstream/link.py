"""A lasting link to one server: one task connects, stays connected, and connects again."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Literal

import anyio
from mcp import Client

from divingbell import text
from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.failures import Failure, readable, why
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport.connector import Connection, Connector
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.settings.servers import Server

State = Literal["idle", "connecting", "ready", "failed", "stopped"]
Mode = Literal["legacy", "auto"]
"""The eras of the protocol that a client speaks: the older one alone, or whichever is spoken."""

FIRST_DELAY, LONGEST_DELAY = 0.5, 60.0
"""Seconds between two attempts: twice as many after each."""
STEADY = 30.0
"""Seconds after which a connection counts as good: the next delay is a short one again."""
PATIENCE = 2.0
"""Seconds that a call waits for the next attempt; for a later one it fails at once."""
GRACE = 0.5
"""Seconds between killing a server that hangs at its start and giving it up."""
STOP_TIMEOUT = 10.0

NewClient = Callable[[Any, Mode], Client]
"""Makes a client of the SDK over a connection that is about to be opened."""
Greet = Callable[[Client], Awaitable[Callable[[], Awaitable[None]]]]
"""Asks a server what has to be known of it, within the time that it has to start. Returns what
takes in the answers, which may take longer."""
Attend = Callable[[Client], Coroutine[Any, Any, None]]
"""Runs for as long as a connection lasts, and is cancelled with it."""


class Link:
    """Holds the connection to a server, and remembers why there is none.

    `on_state` hears each change of `state`. It is called on the event loop and must not block or
    raise.
    """

    def __init__(
        self,
        server: Server,
        connector: Connector,
        redactor: Redactor,
        server_log: ServerLog,
        *,
        new_client: NewClient,
        greet: Greet,
        attend: Attend,
        on_state: Callable[[State], None] | None = None,
    ) -> None:
        self.state: State = "idle"
        self.reason = ""
        """The reason why it is not ready, in words without secrets."""
        self.needs_person = False
        """Whether it fails until somebody has signed in."""
        self._server = server
        self._connector = connector
        self._redactor = redactor
        self._log = server_log
        self._new_client, self._greet, self._attend = new_client, greet, attend
        self._on_state = on_state
        self._is_legacy = False
        self._client: Client | None = None
        self._connection: Connection | None = None
        self._over = asyncio.Event()
        self._wanted = asyncio.Event()
        self._again = asyncio.Event()
        self._outcome: asyncio.Future[None] | None = None
        self._next_attempt = 0.0
        self._misses = 0  # attempts that never got ready
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        """Whether it was started, be it that it was stopped since."""
        return self._task is not None or self._stopping

    @property
    def client(self) -> Client | None:
        """The client of the connection that there is now."""
        return self._client

    @property
    def pid(self) -> int | None:
        """The process of a stdio server that runs."""
        return None if self._connection is None else self._connection.pid

    @property
    def status(self) -> int | None:
        """The last HTTP status of the connection that was an error."""
        return None if self._connection is None else self._connection.status

    def start(self, *, at_once: bool, is_legacy: bool) -> None:
        """Begin to connect, or wait until somebody wants a connection. A second time does nothing.

        `is_legacy`: the server is known to speak the older protocol, so that is tried first.
        """
        if self.is_begun:
            return
        self._is_legacy = is_legacy
        self._outcome = asyncio.get_running_loop().create_future()
        if at_once:
            self._wanted.set()
            self._set_state("connecting")
        self._task = asyncio.create_task(self._run(), name=f"upstream {self._server.name}")

    def retry(self) -> None:
        """Try again now instead of later, after a sign-in for instance."""
        self._wanted.set()
        self._again.set()

    async def stop(self) -> None:
        """End the connection, and the server if it is a process of ours."""
        task, self._task = self._task, None
        self._stopping = True
        self.reason = "it was stopped"
        self._set_state("stopped")
        if task is not None:
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=STOP_TIMEOUT)
            if not done:
                task.cancel()
                await asyncio.wait([task], timeout=STOP_TIMEOUT)
        self._client = None
        self._settle()

    async def connected(self, timeout: float | None = None) -> Client:
        """Return the client once there is a connection; wait at most `timeout` seconds.

        Raises:
            ToolFailed: the server can't be reached; the message says why.
        """
        if self._client is not None:
            return self._client
        now = asyncio.get_running_loop().time
        end = now() + (self._server.start_timeout if timeout is None else timeout)
        self._wanted.set()
        if self.state == "failed" and self._connector.has_new_sign_in():
            self.retry()
        misses = self._misses
        while self._client is None:
            soon = self._again.is_set() or self._next_attempt - now() <= PATIENCE
            hopeless = self._misses > misses or (self.state == "failed" and not soon)
            if self._task is None or end <= now() or hopeless:
                raise self.unavailable()
            assert self._outcome is not None
            await asyncio.wait([self._outcome], timeout=end - now())
        return self._client

    def unavailable(self) -> ToolFailed:
        """Return the error that says why there is no connection, and when it is tried again."""
        reason = self.reason or "it is still starting"
        words = f"the server {self._server.name} is not available: {text.without_folders(reason)}"
        left = self._next_attempt - asyncio.get_running_loop().time()
        if self.state == "failed" and left > 0 and not self.needs_person:
            words += f"; the next attempt is in {left:.0f} s"
        return ToolFailed(words, "tool_unavailable")

    def is_over(self, client: Client) -> bool:
        """Whether the connection of this client has ended, or is about to."""
        return self._over.is_set() or self._client is not client

    async def explained(self) -> None:
        """Wait a moment for the reason of a connection that is over, if it is not told yet."""
        if self.state == "ready" and self._outcome is not None:
            await asyncio.wait([self._outcome], timeout=PATIENCE)

    def abandon(self, client: Client) -> None:
        """End the connection of this client, if there is no later one: another one is made."""
        if self._client is client:
            self._client = None
            self._over.set()

    # What follows runs in the one task.

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        failures = 0
        while True:
            await self._wanted.wait()
            self._again.clear()
            began = now()
            try:
                failure = await self._attempt()
            finally:
                self._client = None
            if self._stopping:
                return  # a cancellation that comes while scopes unwind may get lost in them
            failures = 1 if now() - began > STEADY else failures + 1
            delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 10))
            # With jitter: ten servers behind one address must not all come back at once.
            delay = LONGEST_DELAY if failure.needs_person else delay * random.uniform(0.75, 1.0)
            self.reason = readable(failure.words, self._redactor)
            self.needs_person = failure.needs_person
            self._misses += not failure.was_ready
            self._log.note(f"not connected: {self.reason}")
            self._next_attempt = now() + delay
            self._set_state("failed")
            self._settle()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), delay)

    async def _attempt(self) -> Failure:
        """Connect and stay connected; return why it is over."""
        self._set_state("connecting")
        first = await self._connect("legacy" if self._is_legacy else "auto")
        if first.was_ready or first.final or self._stopping:
            return first
        # Some servers die of a request that they don't know, and some have changed their era.
        other: Mode = "auto" if self._is_legacy else "legacy"
        second = await self._connect(other)
        if second.was_ready:
            self._is_legacy = other == "legacy"
            return second
        return first

    async def _connect(self, mode: Mode) -> Failure:
        connection = self._connection = self._connector.new_connection()
        over = self._over = asyncio.Event()
        limit = self._server.start_timeout
        words = f"it did not answer within {limit:g} seconds of its start"
        late = asyncio.get_running_loop().call_later(limit, connection.give_up, words)
        was_ready = False
        try:
            async with AsyncExitStack() as stack:
                client = self._new_client(connection.open(over), mode)
                async with asyncio.timeout(limit + GRACE):
                    await stack.enter_async_context(client)
                    take_in = await self._greet(client)
                late.cancel()
                self._client = client
                self.reason = ""
                await take_in()
                self._set_state("ready")
                self._settle()
                was_ready = True
                try:
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._attend, client)
                        await over.wait()
                        reason = await connection.reason()
                        group.cancel_scope.cancel()
                finally:
                    over.set()  # before the calls on their way hear that it is closed
                return Failure(reason or "the connection broke off", was_ready=True)
        except Exception as error:
            return await why(error, connection, self._server, was_ready, self._redactor)
        finally:
            late.cancel()
            self._client = self._connection = None

    def _set_state(self, state: State) -> None:
        # Once stopped, it stays so: what the task still says comes too late.
        if state != self.state and (state == "stopped" or not self._stopping):
            self.state = state
            if self._on_state is not None:
                self._on_state(state)

    def _settle(self) -> None:
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)
        self._outcome = asyncio.get_running_loop().create_future()
