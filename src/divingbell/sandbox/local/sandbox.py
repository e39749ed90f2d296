"""One local sandbox: a pid 1 that obeys us, an interpreter behind it, and their limits."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable

from divingbell.errors import SandboxUnavailable
from divingbell.models import Limits
from divingbell.sandbox.base import Consumption, Isolation, Sandbox
from divingbell.sandbox.local.cgroups import Group
from divingbell.sandbox.local.refusal import refused
from divingbell.tether import Tether

ANSWER_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
INTERRUPT_TIMEOUT = 2.0
MAX_ANSWER = 1024

log = logging.getLogger("divingbell")


class LocalSandbox(Sandbox):
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
        self.pid = pid
        self.isolation = isolation
        self.limits = limits
        self.on_ended = lambda status: None
        self.on_gone = lambda reason: None
        self._control = control
        self._group = group
        self._on_stopped = on_stopped
        self._loop = asyncio.get_running_loop()
        self._answers: deque[asyncio.Future[bytes]] = deque()
        self._exited = self._loop.create_future()
        self._stopping: asyncio.Task[None] | None = None
        self._interrupts = 0
        self._all_interrupted = asyncio.Event()
        self._all_interrupted.set()
        self._final = Consumption(0.0)
        self._process = os.pidfd_open(pid)
        control.setblocking(False)
        self._loop.add_reader(control, self._readable)
        self._loop.add_reader(self._process, self._process_exited)

    async def start(self, tether: Tether, cell: int) -> None:
        sealed = self._expect()
        running = self._expect()
        self._send(b"start interpreter", tether.hand_over())
        tether.handed_over(cell)
        await self._answer(sealed, b"sealed")
        await self._answer(running, b"running")

    def interrupt(self) -> None:
        with contextlib.suppress(SandboxUnavailable):
            self._send(b"interrupt")
            self._interrupts += 1
            self._all_interrupted.clear()

    async def interrupted(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(INTERRUPT_TIMEOUT):
                await self._all_interrupted.wait()

    async def replace(self, tether: Tether, cell: int, *, fresh: bool) -> bool:
        running = self._expect()
        self._send(b"replace fresh" if fresh else b"replace", tether.hand_over())
        tether.handed_over(cell)
        return await self._answer(running, b"running") == b"running copy"

    def open_files(self) -> int:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._send(b"start files", [theirs.fileno()])
            return ours.detach()

    def consumption(self) -> Consumption:
        if self._stopping is None:
            self._final = self._group.consumption()
        return self._final

    async def stop(self) -> None:
        if self._stopping is None:
            self.consumption()
            self._stopping = self._loop.create_task(self._stop())
        # Whoever waits may be cancelled; what was begun is still done to its end.
        await asyncio.shield(self._stopping)

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

    # The control line

    def _send(self, verb: bytes, descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [verb], descriptors or [])
        except OSError as error:
            raise SandboxUnavailable(f"the sandbox is gone ({error.strerror})") from None

    def _expect(self) -> asyncio.Future[bytes]:
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._answers.append(future)
        return future

    async def _answer(self, future: asyncio.Future[bytes], word: bytes) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                answer = await future
        except TimeoutError:
            raise SandboxUnavailable(f"the sandbox did not answer ({word.decode()})") from None
        if not answer.startswith(word):
            raise await asyncio.to_thread(refused, _text(answer))
        return answer

    def _readable(self) -> None:
        try:
            message = self._control.recv(MAX_ANSWER)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._close_control()
        elif message == b"interrupted":
            self._interrupts -= 1
            if self._interrupts <= 0:
                self._all_interrupted.set()
        elif message.startswith(b"ended "):
            # While an answer is due, this is the end of the one that is being replaced.
            if not self._answers:
                number = message.removeprefix(b"ended ")
                self.on_ended(int(number) if number.isdigit() else 0)
        elif self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_result(message)

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        self._all_interrupted.set()
        while self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_result(b"failed: its first process has ended")

    def _process_exited(self) -> None:
        self._loop.remove_reader(self._process)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        self._exited.set_result(None)
        if self._stopping is None:
            self.on_gone("its first process was killed")


def _text(answer: bytes) -> str:
    return answer.removeprefix(b"failed").strip(b" :").decode("utf-8", "replace")
