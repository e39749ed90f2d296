"""Uses of skills, counted from the journal: how often, how they ended, and what was saved."""

import asyncio
import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from divingbell import logs
from divingbell.journal.events import CellEnded, JournalEvent, SessionEnded, SkillUsed
from divingbell.skills.record import Usage
from divingbell.skills.store import Stores

log = logs.logger("divingbell.skills")

MOST_WAITING = 10_000
"""Uses that wait for a disk that hangs, or for the ends of their cells; more are not counted."""
CLOSE_TIMEOUT = 5.0

_Waiting = dict[str, dict[str, Usage]]
"""By user and skill."""


class Uses:
    """Adds uses to the stores, in a thread of its own. It never fails, it logs.

    A skill is used once in a cell that has imported it, however often it is called there.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._open: dict[tuple[str, int], dict[str, SkillUsed]] = {}
        """By session and cell, until that has ended."""
        self._waiting: _Waiting = {}
        self._count = 0
        self._guard = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="divingbell-skills")
        self._writing: Future[None] | None = None
        self._closed = False

    def take(self, event: JournalEvent) -> None:
        """Note a use, and whether the cell that it was in went well; see the journal."""
        if isinstance(event, SkillUsed):
            if event.cell == 0:
                self._add(event, failed=False)
            elif len(self._open) < MOST_WAITING:
                self._open.setdefault((event.key, event.cell), {}).setdefault(event.name, event)
        elif isinstance(event, CellEnded):
            failed = event.result is None or event.result.status != "ok"
            for used in self._open.pop((event.key, event.cell), {}).values():
                self._add(used, failed=failed)
        elif isinstance(event, SessionEnded):
            for place in [place for place in self._open if place[0] == event.key]:
                del self._open[place]

    def _add(self, used: SkillUsed, *, failed: bool) -> None:
        added = Usage(1, int(failed), 0 if failed else used.tokens)
        with self._guard:
            if self._closed or self._count >= MOST_WAITING:
                log.warning("a use of the skill %s is not counted", used.name)
                return
            self._count += 1
            of_user = self._waiting.setdefault(used.principal.user, {})
            of_user[used.name] = of_user.get(used.name, Usage()) + added
            if self._writing is None or self._writing.done():
                self._writing = self._thread.submit(self._write)

    async def close(self) -> None:
        """Write what waits, for a limited time."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            writing = self._thread.submit(self._write)
        self._thread.shutdown(wait=False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await asyncio.wrap_future(writing)

    def _write(self) -> None:
        while True:
            with self._guard:
                batch, self._waiting, self._count = self._waiting, {}, 0
                if not batch:
                    self._writing = None  # under the guard: what comes next starts another
                    return
            for user, added in batch.items():
                try:
                    self._stores.of(user).add_usage(added)
                except Exception as error:  # whatever it is, the cells go on
                    log.warning("uses of skills can't be counted: %s", error)
