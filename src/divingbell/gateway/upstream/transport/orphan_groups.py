"""Process groups of stdio servers, written down, so that none is orphaned for long.

If this process is killed, the next start ends those that did not notice.
"""

import contextlib
import os
import signal
from pathlib import Path

from divingbell import logs
from divingbell.host import owned_folder, private_file

log = logs.logger("divingbell.gateway")

MAX_NOTE = 1 << 10


class ProcessGroups:
    """A folder with a file for each group: its number, and how its leader is recognised."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        owned_folder.make(folder, 0o700)

    def note(self, pid: int) -> None:
        """Write down a group: a server was started as its leader."""
        known = _identity(pid)
        if known is not None:
            with contextlib.suppress(OSError):  # a full disk is no reason not to start a server
                (self._folder / str(pid)).write_text(known)

    def forget(self, pid: int) -> None:
        """Remove the note of a group, which has ended."""
        with contextlib.suppress(OSError):
            (self._folder / str(pid)).unlink(missing_ok=True)


def end_orphans(folder: Path) -> None:
    """End the groups that a Divingbell which is gone has left there."""
    with contextlib.suppress(OSError):
        if not owned_folder.check(folder):
            return
        for file in folder.iterdir():
            pid = int(file.name) if file.name.isdigit() else 0
            known = private_file.read(file, MAX_NOTE)
            # A number may belong to somebody else by now.
            if pid > 1 and known is not None and _identity(pid) == known.decode("utf-8", "replace"):
                log.warning("the server with pid %d was left by a Divingbell that is gone", pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)


def _identity(pid: int) -> str | None:
    """Return what no other process has in common with the leader of a group; None if it leads none.

    It is when it was started, whose it is, since which start of the machine, and in which table of
    processes that is its number.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        group, started = int(fields[2]), fields[19]
        owner = os.stat(f"/proc/{pid}").st_uid
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        table = os.readlink("/proc/self/ns/pid")
    except (OSError, IndexError, ValueError):
        return None
    return f"{started} {owner} {boot} {table}" if group == pid else None
