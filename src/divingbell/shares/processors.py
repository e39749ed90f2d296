"""The processors of this machine: whether one is free for work that nobody waits for."""

import asyncio
import os
from pathlib import Path

from divingbell.shares.running import cells

SHORTEST_WAIT = 0.005
LONGEST_WAIT = 0.16
_LOAD = Path("/proc/loadavg")


def count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def one_is_free() -> bool:
    """Whether no cell of this process has to share its processor with more work."""
    return not cells.running or _running() <= count()


async def until_one_is_free() -> None:
    """Wait until one is free; look again and again, ever more rarely."""
    pause = SHORTEST_WAIT
    while not one_is_free():
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_WAIT)


def _running() -> int:
    """Return the number of threads of the whole machine that run or could run. The one that asks
    is among them, and lets go of its processor a moment later."""
    return int(_LOAD.read_text().split()[3].partition("/")[0])
