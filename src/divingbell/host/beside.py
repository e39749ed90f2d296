"""Blocking work beside the event loop, in a thread of its own, which can be called off.

Not in one of the event loop's threads: those are waited for when a program ends, and a daemon or a
package index that keeps silent would hold up the exit.
"""

import asyncio
import contextlib
import contextvars
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

CLEAR_UP_TIMEOUT = 5.0
"""Seconds that work which was called off has to remove what it has half made."""

Outcome = TypeVar("Outcome")


class CalledOff(Exception):
    """Raised in a thread whose work nobody waits for any more."""


class _Work:
    """One piece of work, and the programs that it has started."""

    def __init__(self) -> None:
        self.called_off = False
        self.processes: list[subprocess.Popen[Any]] = []

    def call_off(self) -> None:
        self.called_off = True  # first: a program that starts now is ended by `ending` itself
        for process in list(self.processes):
            _kill(process)


_work: contextvars.ContextVar[_Work | None] = contextvars.ContextVar("work", default=None)


async def run(work: Callable[[], Outcome], clear_up: float = CLEAR_UP_TIMEOUT) -> Outcome:
    """Return what the work returns. Cancelling this calls the work off.

    It is then given `clear_up` seconds to end; the programs that it has started are killed.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()
    current = _Work()

    def settle(outcome: Callable[[], None]) -> None:
        if not future.done():
            outcome()

    def target() -> None:
        _work.set(current)
        try:
            outcome = partial(future.set_result, work())
        except Exception as error:
            outcome = partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(settle, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(target,), name="divingbell", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        current.call_off()
        future.add_done_callback(heard)
        await asyncio.wait([future], timeout=clear_up)
        raise


def check() -> None:
    """Raise CalledOff where the work of this thread was called off; for loops that take long."""
    current = _work.get()
    if current is not None and current.called_off:
        raise CalledOff


@contextlib.contextmanager
def ending(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """Enter a block whose process, the head of a group of its own, does not outlive it.

    Raises:
        CalledOff: nobody waits for it any more, and it was killed.
    """
    current = _work.get() or _Work()
    current.processes.append(process)
    try:
        check()
        yield
        process.wait()
        check()
    except BaseException:
        _kill(process)
        raise
    finally:
        current.processes.remove(process)


def _kill(process: "subprocess.Popen[Any]") -> None:
    if process.returncode is None:  # else its number may be another one's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def heard(future: "asyncio.Future[Any]") -> None:
    """Look at the error of a future, for one that nobody may come back for: asyncio would complain
    of an error that none has seen."""
    if not future.cancelled():
        future.exception()
