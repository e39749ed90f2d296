"""Shares of what the kernel counts by user, so that no session uses up what others need.

What a session takes counts against the owner of its user namespace, too. That is one uid for all
sessions of a process: an unprivileged one if root has started it, else the user, whose other
programs draw on the same quota.
"""

import resource
from pathlib import Path

from divingbell_inside import layout

INSTANCES = 4
"""Of inotify, in one share: each can watch many files and folders. A user has 128 on most
machines, which is not enough to give some to each of 300 sessions."""
_LIMITS = Path("/proc/sys/fs/inotify")

Inotify = tuple[int, int]  # instances and watches


class Quotas:
    """The share of each session of this process."""

    def __init__(self, sessions: int, *, shared: bool, limits: Path = _LIMITS) -> None:
        """Divide it: among so many sessions, and half of it is the user's where it is `shared`."""
        part = 2 if shared else 1
        instances = int((limits / "max_user_instances").read_text()) // part
        watches = int((limits / "max_user_watches").read_text()) // part
        shares = instances // INSTANCES
        self._free: list[Inotify] = [(INSTANCES, watches // shares)] * shares if shares else []
        signals, _ = resource.getrlimit(resource.RLIMIT_SIGPENDING)
        self.pending_signals = layout.PENDING_SIGNALS
        if signals != resource.RLIM_INFINITY:
            # Half is left: for the user, and for kill(), which the kernel queues past every limit,
            # at most once a signal and process.
            self.pending_signals = min(layout.PENDING_SIGNALS, signals // 2 // sessions)

    def take_inotify(self) -> Inotify:
        """Return a share; of nothing if all are taken, because who has one must find it there."""
        return self._free.pop() if self._free else (0, 0)

    def give_back_inotify(self, share: Inotify) -> None:
        if share != (0, 0):
            self._free.append(share)
