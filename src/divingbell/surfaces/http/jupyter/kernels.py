"""Kernels: the sessions of users, by the names under which Jupyter's clients know them."""

import asyncio
import contextlib
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator

from divingbell.app import Divingbell
from divingbell.journal.events import JournalEvent, SessionEnded
from divingbell.principal import Principal
from divingbell.session.base import SessionHandle
from divingbell.shares.host_time import HostTime
from divingbell.surfaces.http.jupyter.kernel import Kernel
from divingbell.surfaces.http.queue import Queue


class Kernels:
    """The kernels of all users. Each is one of the user's sessions, however that was opened."""

    def __init__(self, bell: Divingbell, queue: Queue) -> None:
        self._bell = bell
        self._queue = queue
        self._kernels: dict[str, Kernel] = {}
        """By the keys of their sessions, which no other session ever has."""
        self._paces: defaultdict[str, HostTime] = defaultdict(lambda: HostTime(lambda *_: None))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hear of sessions that end; at the end no cell of a kernel runs any more."""
        stop_watching = self._bell.journal.watch(self._note)
        try:
            yield
        finally:
            await asyncio.gather(*(kernel.stop() for kernel in list(self._kernels.values())))
            stop_watching()

    async def create(self, principal: Principal) -> Kernel:
        """Open a session and return it as a kernel.

        Raises:
            CapacityError: there are too many.
            SandboxUnavailable: no sandbox could be made.
        """
        return await self.reopen(principal, str(uuid.uuid4()))

    async def reopen(self, principal: Principal, name: str) -> Kernel:
        """Return the kernel of that name, in a new session if it has none. Raises: as `create`."""
        session, _ = await self._bell.owned.open(principal, name)
        return self._of(principal, name, session)

    def find(self, principal: Principal, name: str) -> Kernel | None:
        """Return the principal's kernel of that name, if there is one."""
        session = self._bell.owned.find(principal, name)
        return None if session is None else self._of(principal, name, session)

    def of(self, principal: Principal) -> Iterator[Kernel]:
        """Return all kernels of a principal."""
        for name, session in self._bell.owned.of(principal):
            yield self._of(principal, name, session)

    async def end(self, principal: Principal, name: str) -> bool:
        """End a kernel and its session; return whether there was one."""
        return await self._bell.owned.close(principal, name)

    def _of(self, principal: Principal, name: str, session: SessionHandle) -> Kernel:
        if (kernel := self._kernels.get(session.key)) is None:
            pace = self._paces[principal.user]

            async def end() -> bool:
                return await self.end(principal, name)

            kernel = Kernel(name, session, self._queue, end, pace, self._count)
            self._kernels[session.key] = kernel
        return kernel

    def _count(self, code: str) -> None:
        if self._bell.metrics is not None:
            self._bell.metrics.answered(code)

    def _note(self, event: JournalEvent) -> None:
        if isinstance(event, SessionEnded) and (kernel := self._kernels.pop(event.key, None)):
            kernel.ended()
