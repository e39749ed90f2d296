"""The kernel's own thread that watches memory (DAMON), where there is one.

It walks every mapping of every page that it looks at. Sessions share the zygote's pages, so with
hundreds of them alive it has much to walk, and takes locks that a fork needs.
"""

import os
import time
from pathlib import Path

NAME = "kdamond"


class Kdamond:
    """What it has used of one processor since this was made."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._before = _seconds()

    def words(self) -> str:
        now = _seconds()
        if self._before is None or now is None:
            return "– (this kernel runs no kdamond)"
        share = (now - self._before) / (time.monotonic() - self._since)
        return f"{share * 100:.0f} % of one processor"


def _seconds() -> float | None:
    """Its processor time since the machine was started; None if there is no such thread."""
    found = None
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if (process / "comm").read_text().startswith(NAME):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                ticks = int(fields[11]) + int(fields[12])  # utime, stime
                found = (found or 0.0) + ticks / os.sysconf("SC_CLK_TCK")
        except OSError:  # it has just ended
            continue
    return found
