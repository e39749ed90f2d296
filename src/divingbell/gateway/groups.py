"""The process groups of stdio servers, written down: if this process is killed, the next start
ends those that did not notice."""

import contextlib
import logging
import os
import signal
from pathlib import Path

log = logging.getLogger("divingbell.gateway")


class Groups:
    """A folder with a file for each group: its number, and when its head was started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)

    def note(self, pid: int) -> None:
        """A server was started as the head of a group."""
        started = _start_time(pid)
        if started is not None:
            with contextlib.suppress(OSError):  # a full disk is no reason not to start a server
                (self._folder / str(pid)).write_text(started)

    def forget(self, pid: int) -> None:
        """The group has ended."""
        with contextlib.suppress(OSError):
            (self._folder / str(pid)).unlink(missing_ok=True)


def end_left(folder: Path) -> None:
    """End the groups that a Divingbell which is gone has left there."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            pid = int(file.name) if file.name.isdigit() else 0
            # A number may belong to somebody else by now; its start time tells.
            if pid > 1 and _start_time(pid) == file.read_text():
                log.warning("the server with pid %d was left by a Divingbell that is gone", pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)


def _start_time(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
