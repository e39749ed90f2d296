"""One local sandbox: a pid 1 that obeys us, an interpreter behind it, and their limits."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from divingbell import logs
from divingbell.errors import SandboxUnavailable
from divingbell.host.cgroups import Group
from divingbell.models import Consumption, Isolation, Limits
from divingbell.sandbox.local.refusal import refused
from divingbell.sandbox.supervised import SupervisedSandbox

STOP_TIMEOUT = 10.0

log = logs.logger("divingbell")


class LocalSandbox(SupervisedSandbox):
    """The host's handle on a session's pid 1, which is our child: we reap it."""

    def __init__(
        self,
        pid: int,
        control: socket.socket,
        group: Group,
        isolation: Isolation,
        limits: Limits,
        on_stopped: Callable[[], None],
    ) -> None:
        super().__init__(control, isolation, limits)
        self.pid = pid
        self._group = group
        self._on_stopped = on_stopped
        self._exited = self._loop.create_future()
        self._process = os.pidfd_open(pid)
        self._loop.add_reader(self._process, self._process_exited)

    def _count(self) -> Consumption:
        return self._group.consumption()

    def pids(self) -> list[int]:
        found = [self.pid]
        for each in found:
            # One that ends meanwhile has no children any more.
            with contextlib.suppress(OSError):
                for thread in Path(f"/proc/{each}/task").iterdir():
                    found += [int(child) for child in (thread / "children").read_text().split()]
        return found

    def give_way(self, to_all: bool) -> None:
        self._group.give_way(to_all)

    def share(self, part: float) -> None:
        self._group.share(part)

    def _refusal(self, reason: str) -> SandboxUnavailable:
        return refused(reason)

    async def _stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            # Pid 1 of a namespace takes every process in it along.
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        await asyncio.wait([self._exited], timeout=STOP_TIMEOUT)
        self._close_control()
        self._loop.remove_reader(self._process)
        os.close(self._process)
        # In a thread: the kernel may keep a group busy for some milliseconds, and a workspace
        # on the host's disk may hold a million files.
        await asyncio.to_thread(self._clean_up)

    def _clean_up(self) -> None:
        try:
            self._group.remove()
            self._on_stopped()
        except OSError as error:
            log.warning("not all of a session could be removed: %s", error)

    def _process_exited(self) -> None:
        self._loop.remove_reader(self._process)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        self._exited.set_result(None)
        if self._stopping is None:
            self.on_gone("its first process was killed")
