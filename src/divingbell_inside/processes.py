"""Processes of a session, as pid 1 signals them and ends them."""

import contextlib
import os
import signal
import time
from collections.abc import Callable

PATIENCE, PAUSE = 1000, 0.002
PASSES = 50
"""Looks at who is there. One that forks while the others are ended is met by the next look."""


def send(pid: int, number: int) -> None:
    """Send a signal to a process (or with -pid to a group), if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def all_of_them() -> set[int]:
    """Return the pid of everyone here."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def end_session(leader: int) -> None:
    """End everyone who is in the session that this process began with `setsid`."""
    ended: set[int] = set()
    for _ in range(PASSES):
        found = {pid for pid in all_of_them() - ended if _session_of(pid) == leader}
        if not found:
            return
        for pid in found:
            send(pid, signal.SIGKILL)
        ended |= found


def end_all_but(spared: set[int], reap: Callable[[], None]) -> None:
    """End everyone else, and wait until their places are free. Pid 1 does it."""
    send(-1, signal.SIGSTOP)  # nothing can fork while it is stopped
    for pid in spared:
        send(pid, signal.SIGCONT)
    for _ in range(PATIENCE):
        reap()
        others = all_of_them() - spared
        if not others:
            break
        for pid in others:
            send(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:  # gone meanwhile
        return 0
