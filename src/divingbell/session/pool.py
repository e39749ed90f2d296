"""The pool: sessions that wait to be opened, as many as were opened in the last rush."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.models import Limits
from divingbell.sandbox.base import Backend
from divingbell.session.interpreter import Interpreter
from divingbell.shares import processors

BURST = 10.0
REMEMBERED = 300.0
"""Seconds: as many wait as were opened in the busiest ten seconds of the last five minutes."""
PART_OF_MEMORY = 0.05
"""Of what is available, for those above the least number."""
USUAL_MEMORY = 10 << 20
"""Bytes that one which waits is taken to hold where nobody counts them."""
REFILL_PAUSE = 0.01
"""A pause before the pool is refilled, so that the session just opened has the processor."""
LOOK_AGAIN = 5.0
_MEMORY = Path("/proc/meminfo")

log = logs.logger("divingbell")


class Demand:
    """The number of sessions that were opened in the busiest moment that is remembered."""

    def __init__(self, most: int) -> None:
        self._opened: deque[float] = deque(maxlen=most)
        """The times of openings in the last ten seconds."""
        self._peaks: deque[tuple[float, int]] = deque()
        """Times, and how many had been opened within ten seconds then; each fewer than the one
        before."""

    def note(self, now: float) -> None:
        """Count a session that is opened."""
        self._opened.append(now)
        while self._opened[0] < now - BURST:
            self._opened.popleft()
        count = len(self._opened)
        while self._peaks and self._peaks[-1][1] <= count:
            self._peaks.pop()
        self._peaks.append((now, count))

    def busiest(self, now: float) -> int:
        while self._peaks and self._peaks[0][0] < now - REMEMBERED:
            self._peaks.popleft()
        return self._peaks[0][1] if self._peaks else 0


class Pool:
    """Makes sessions before they are asked for: one at a time, at low priority, while no cell needs
    the processor. `room` tells how many more sessions there may be.
    """

    def __init__(
        self, backend: Backend, limits: Limits, least: int, most: int, room: Callable[[], int]
    ) -> None:
        self._backend = backend
        self._limits = limits
        self._least = least
        self._most = max(least, most)
        self._room = room
        self._demand = Demand(max(self._most, 1))
        self._waiting: deque[Interpreter] = deque()
        self.taken = 0
        """How many were opened that had waited, or were about to."""
        self._making = False
        self._took = 0.0
        """Seconds, to make the last one."""
        self._coming: Interpreter | None = None
        """The one that is being made, once its sandbox is there."""
        self._claim: asyncio.Future[Interpreter | None] | None = None
        """Of somebody who waits for it."""
        self._looking = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def wanted(self) -> int:
        """The number of sessions that should wait now."""
        wanted = min(self._demand.busiest(time.monotonic()), self._most, self._room())
        if wanted > self._least:
            wanted = min(wanted, self._affordable())
        return max(wanted, self._least)

    def start(self) -> None:
        if self._least:
            self._keeping = asyncio.create_task(self._keep())
            self._looking.set()

    async def stop(self) -> None:
        """End those that wait."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            await asyncio.wait([keeping])
        while self._waiting:
            self._end(self._waiting.popleft())
        for outcome in await asyncio.gather(*self._ending, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("a session that waited was not closed well", exc_info=outcome)

    async def take(self, limits: Limits) -> Interpreter | None:
        """Return one that waits, or the one that is about to; None if there is neither.

        All are sealed with the same limits: whoever wants other walls gets none. The limits that
        the host enforces may differ.
        """
        if self._keeping is None or not limits.sealed_like(self._limits):
            return None
        interpreter = await self._next()
        if interpreter is not None:
            interpreter.sandbox.limits = limits
            self.taken += 1
        return interpreter

    async def _next(self) -> Interpreter | None:
        self._demand.note(time.monotonic())
        self._looking.set()
        while self._waiting:
            interpreter = self._waiting.popleft()
            if interpreter.alive:
                interpreter.sandbox.give_way(False)
                return interpreter
            self._end(interpreter)
        if self._making and self._claim is None:
            return await self._claimed()
        return None

    async def _claimed(self) -> Interpreter | None:
        """Return the one that is being made, from now on as quickly as can be."""
        self._claim = claim = asyncio.get_running_loop().create_future()
        if self._coming is not None:
            self._coming.sandbox.give_way(False)
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            claim.add_done_callback(self._leave)
            raise

    def _leave(self, claim: asyncio.Future[Interpreter | None]) -> None:
        """Let it wait for somebody else: whoever claimed it has gone."""
        if (interpreter := claim.result()) is not None:
            if self._keeping is not None:
                self._waiting.append(interpreter)
            else:
                self._end(interpreter)

    async def _keep(self) -> None:
        """Have as many as are wanted, for as long as the pool is open."""
        while True:
            self._looking.clear()
            surplus = len(self._waiting) - self.wanted
            if surplus > 0:
                await processors.until_one_is_free()
                await self._drop()
            elif surplus < 0:
                await asyncio.sleep(self._pause())
                await processors.until_one_is_free()
                if not await self._add():
                    await self._looking.wait()
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN):
                        await self._looking.wait()

    async def _add(self) -> bool:
        """Make one, for whoever has claimed it meanwhile, or to wait; return whether it was made.

        The next session that is opened meets the same trouble and reports it.
        """
        made = None
        self._making = True
        began = time.monotonic()
        try:
            self._coming = coming = Interpreter(await self._backend.create(self._limits))
            coming.sandbox.give_way(self._claim is None)
            await coming.start()
            made = coming
        except (DivingbellError, OSError) as error:
            log.warning("the pool could not be filled: %s", error)
        finally:
            self._making, self._coming = False, None
            claim, self._claim = self._claim, None
            if claim is not None:
                claim.set_result(made)
            self._took = time.monotonic() - began
        if made is not None and claim is None:
            made.send({"op": "warm"})
            self._waiting.append(made)
        return made is not None

    def _pause(self) -> float:
        """Return the seconds to wait before the next one is made: beyond the least number nobody is
        in a hurry, and containers take seconds of processor time."""
        return REFILL_PAUSE if len(self) < self._least else max(REFILL_PAUSE, self._took)

    async def _drop(self) -> None:
        """End one and wait for its end: many at once would be felt."""
        if self._waiting:
            self._end(self._waiting.popleft())
            await asyncio.wait(self._ending)

    def _affordable(self) -> int:
        each = USUAL_MEMORY
        if self._waiting and (held := self._waiting[0].sandbox.consumption().memory) is not None:
            each = max(held, each)
        return int(_available_memory() * PART_OF_MEMORY) // each

    def _end(self, interpreter: Interpreter) -> None:
        task = asyncio.create_task(interpreter.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _available_memory() -> int:
    """Return the bytes that could be used without swapping, as the kernel sees it."""
    for line in _MEMORY.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0
