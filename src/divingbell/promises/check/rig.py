"""The parts that all checks from outside share: a rig, a watch on this process, a register."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from divingbell.app import Divingbell
from divingbell.errors import FileRefused
from divingbell.models import MB, Result
from divingbell.promises import PREAMBLE, PROBES
from divingbell.sandbox.base import Zygote
from divingbell.session.local import LocalSession
from divingbell.session.session import Session
from divingbell.shares import loop_thread

MEMORY_ALLOWANCE = 192 * MB
"""Bytes that this process may grow by while one session does its worst."""
BUSY_ALLOWANCE = 0.15
"""Seconds of processor time that the event loop may spend without a pause for other sessions.
Not of the clock: how busy the machine is otherwise must not matter. The aim is a third of it; one
pass of Python's garbage collection over a large program takes the rest."""
CLOSE_ALLOWANCE = 20.0
SAMPLE = 0.02
"""Seconds between two looks at the memory."""
TICK = 0.001
"""Seconds between two looks at the loop. What it does for others meanwhile counts too."""
SMALL: dict[str, Any] = {"memory": "128MB", "disk": "64MB", "open_files": 512, "timeout": 10.0}
"""The limits of a session that is checked, where a promise does not say otherwise. They are no
one's defaults, so that no session is used that was made before the check began."""


class PromiseBroken(Exception):
    """The promise is not kept; the message says what was seen."""


def judged(result: Result) -> str:
    """The verdict that a probe has printed.

    Raises:
        PromiseBroken: it is UNSAFE, or there is none.
    """
    lines = result.text.splitlines()
    if bad := [line for line in lines if line.startswith("UNSAFE")]:
        raise PromiseBroken("; ".join(bad))
    good = [line.removeprefix("SAFE").strip() for line in lines if line.startswith("SAFE")]
    if not good or result.status != "ok":
        raise PromiseBroken(f"the probe gave no verdict: {result.status} {result.error}")
    return "; ".join(filter(None, good)) or "safe"


class CheckRig:
    """Opens sessions that have the preamble, and runs probes in them."""

    def __init__(self, bell: Divingbell) -> None:
        self.bell = bell

    @contextlib.asynccontextmanager
    async def session(self, **limits: Any) -> AsyncIterator[Session]:
        async with self.bell.session(**{**SMALL, **limits}) as session:
            await session.files.put(PREAMBLE.name, PREAMBLE)
            yield session

    async def run(self, session: Session, probe: str, **context: Any) -> Result:
        source = (PROBES / probe).read_text("utf-8")
        return await session.run(source, context=context or None)

    async def works(self, session: Session) -> None:
        after = await session.run("1 + 1", timeout=10)
        if after.value != 2:
            raise PromiseBroken(
                f"the session does not work afterwards: {after.status} {after.error}"
            )

    @property
    def zygote(self) -> Zygote | None:
        """The process that sessions are cloned from, None with a backend that has none."""
        assert self.bell._backend is not None
        return self.bell._backend.zygote

    async def kill_zygote(self) -> None:
        """End the process that sessions are cloned from; the next session starts another.

        Where there is none, each session is started by the host itself.
        """
        if self.zygote is None:
            return
        if self.zygote.pid is None:
            raise PromiseBroken("the zygote does not run")
        os.kill(self.zygote.pid, signal.SIGKILL)


def local_of(session: Session) -> LocalSession:
    """Return what runs the code of a session, which a check looks into."""
    local = session._handle
    assert isinstance(local, LocalSession)
    return local


class Watch:
    """Measures this process: the growth of its memory and the lag of its event loop."""

    def __init__(self) -> None:
        self.memory = 0
        self.busy = 0.0

    async def __aenter__(self) -> "Watch":
        gc.freeze()  # as `divingbell serve` does
        loop_thread.hand_over_soon()
        self._base = _resident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)  # it must have begun, or a block right now goes unseen
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(SAMPLE)
        self._ended.set()
        self._task.cancel()
        await asyncio.wait({self._task})
        self._thread.join()
        gc.unfreeze()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE):
            self.memory = max(self.memory, _resident() - self._base)

    async def _tick(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK)
            self.busy = max(self.busy, time.thread_time() - before)

    def judge(self) -> str:
        words = f"memory +{self.memory // MB} MB, event loop busy for {self.busy:.2f} s at most"
        if self.memory > MEMORY_ALLOWANCE or self.busy > BUSY_ALLOWANCE:
            raise PromiseBroken(f"the host suffers: {words}")
        return words


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


Check = Callable[[CheckRig], Awaitable[str]]
CHECKS: dict[str, Check] = {}
ALONE: set[str] = set()
"""Those that measure this process or end its zygote: nothing may run beside them."""


def checks(*identifiers: str, alone: bool = False) -> Callable[[Check], Check]:
    """Register a check of these promises."""

    def register(function: Check) -> Check:
        for identifier in identifiers:
            CHECKS[identifier] = function
            if alone:
                ALONE.add(identifier)
        return function

    return register


def expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise PromiseBroken(otherwise)


async def refused(work: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_ALLOWANCE):
            answer = await work
    except FileRefused:
        return
    except TimeoutError:
        raise PromiseBroken(f"{what}: the host was made to wait") from None
    raise PromiseBroken(f"{what} was granted: {str(answer)[:100]}")


async def names_of(session: Session) -> set[str]:
    return {item.path for item in await session.files.list()} - {PREAMBLE.name}


async def closed_in_time(session: Session) -> str:
    started = time.monotonic()
    await session.close()
    seconds = time.monotonic() - started
    expect(seconds < CLOSE_ALLOWANCE, f"closing took {seconds:.1f} s")
    return f"closed in {seconds:.2f} s"
