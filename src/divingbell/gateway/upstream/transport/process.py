"""The process of a stdio server, with the process group that it leads."""

import asyncio
import contextlib
import os
import signal
import subprocess

from divingbell import logs

log = logs.logger(__name__)

EXIT_GRACE = 2.0
"""Seconds to leave after its input has closed, and again after SIGTERM."""


class Process:
    """The process of a server. Its exit is seen at once.

    It is reaped only after its group is dead: until then the group's number can't belong to anybody
    else.
    """

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.child = child
        self._loop = asyncio.get_running_loop()
        self._descriptor = os.pidfd_open(child.pid)
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._on_exit)

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def status(self) -> int | None:
        return self.child.returncode

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._descriptor)
        if not self.exited.done():
            self.exited.set_result(None)

    def signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, number)

    async def wait(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self.exited], timeout=seconds)
        return bool(done)

    async def end(self) -> None:
        """End the whole group: by SIGTERM, then by SIGKILL; return when the server is reaped."""
        if not await self.wait(EXIT_GRACE):
            self.signal_group(signal.SIGTERM)
            await self.wait(EXIT_GRACE)
        self.signal_group(signal.SIGKILL)
        if await self.wait(EXIT_GRACE):
            self.child.wait()
        else:
            log.warning("process %d of a server does not end, even by SIGKILL", self.pid)
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def ending(self) -> str:
        """Return how it ended, in words."""
        if not self.exited.done():
            return "it closed its output"
        # Leave the process to be reaped by `end`.
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return "it closed its output"
        if found.si_code == os.CLD_EXITED:
            return f"it ended with status {found.si_status}"
        return f"it was killed by {_signal_name(found.si_status)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
