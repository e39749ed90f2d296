"""A sandbox whose first process is our supervisor, at the other end of a control line.

Every backend has one: the verbs are the same, whatever the walls are made of. What differs is
how the processes are made, counted and removed.
"""

import asyncio
import contextlib
import socket
from abc import abstractmethod
from collections import deque
from dataclasses import replace

from divingbell.errors import SandboxUnavailable
from divingbell.models import Consumption, Isolation, Limits
from divingbell.sandbox.base import Sandbox, Tether

ANSWER_TIMEOUT = 30.0
INTERRUPT_TIMEOUT = 2.0
MAX_ANSWER = 1024


class SupervisedSandbox(Sandbox):
    """The host's end of the control line. Descriptors of new tethers go over it."""

    def __init__(self, control: socket.socket, isolation: Isolation, limits: Limits) -> None:
        self.isolation = isolation
        self.limits = limits
        self.on_ended = lambda status: None
        self.on_gone = lambda reason: None
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._answers: deque[asyncio.Future[bytes]] = deque()
        self._stopping: asyncio.Task[None] | None = None
        self._interrupts = 0
        self._all_interrupted = asyncio.Event()
        self._all_interrupted.set()
        self._final = Consumption(0.0)
        control.setblocking(False)
        self._loop.add_reader(control, self._readable)

    async def start(self, tether: Tether, cell: int) -> None:
        sealed = self._expect()
        running = self._expect()
        self._send(b"start interpreter", tether.hand_over())
        tether.handed_over(cell)
        abi = (await self._answer(sealed, b"sealed")).removeprefix(b"sealed ")
        self.isolation = replace(self.isolation, landlock=int(abi) if abi.isdigit() else 0)
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
        return self._open(b"start files")

    def open_command(self, number: int) -> int:
        return self._open(b"start command %d" % number)

    def end_command(self, number: int) -> None:
        with contextlib.suppress(SandboxUnavailable):
            self._send(b"end command %d" % number)

    def _open(self, verb: bytes) -> int:
        """Have a server started; return the descriptor of a socket to it."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._send(verb, [theirs.fileno()])
            return ours.detach()

    def consumption(self) -> Consumption:
        if self._stopping is None:
            self._final = self._count()
        return self._final

    async def stop(self) -> None:
        if self._stopping is None:
            self.consumption()
            self._stopping = self._loop.create_task(self._stop())
        # Whoever waits may be cancelled; what was begun is still done to its end.
        await asyncio.shield(self._stopping)

    @abstractmethod
    def _count(self) -> Consumption:
        """Return what has been used so far, while it runs."""

    @abstractmethod
    async def _stop(self) -> None:
        """End every process and remove everything."""

    @abstractmethod
    def _refusal(self, reason: str) -> SandboxUnavailable:
        """Return the error for a supervisor that could not seal itself in. May take a moment."""

    def _line_closed(self) -> None:
        """Take note that the supervisor has let go of its end."""

    # The control line

    def _send(self, verb: bytes, descriptors: list[int] | None = None) -> None:
        if self._control.fileno() < 0:
            raise SandboxUnavailable("the sandbox is gone: its first process has ended")
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
            raise SandboxUnavailable(
                f"the sandbox did not answer within {ANSWER_TIMEOUT:g} s ({word.decode()}); "
                "`divingbell doctor` may say why"
            ) from None
        if not answer.startswith(word):
            raise await asyncio.to_thread(self._refusal, _text(answer))
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
            self._line_closed()
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


def _text(answer: bytes) -> str:
    return answer.removeprefix(b"failed").strip(b" :").decode("utf-8", "replace")
