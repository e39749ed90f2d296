"""Pid 1 of a session: starts, interrupts, replaces and stops the interpreter. Nothing else.

It obeys the host on the control socket, reads nothing of what user code writes, is not
dumpable, and has no signal handler but the one that tells it that a child has ended (the
kernel drops every other signal that a process inside sends to pid 1). The interpreter is its
child; so is the waiting copy of the interpreter, and so are the short-lived file servers.

Verbs, from the host:  start (interpreter or files), interrupt, replace, stop.
Answers, to the host:  sealed <landlock abi> · running fresh|copy · ended <wait status> · failed.
"""

import array
import itertools
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import NoReturn

from divingbell_inside import chamber, kernel

Entry = Callable[[socket.socket, int, socket.socket], None]
FileServer = Callable[[socket.socket], None]
MAX_VERB = 64
_CREDENTIALS = struct.Struct("3i")


def _run(entry: Callable[[], None]) -> NoReturn:
    try:
        entry()
        os._exit(0)
    finally:
        os._exit(1)


class Supervisor:
    def __init__(
        self, control: socket.socket, shape: chamber.Shape, interpret: Entry, serve: FileServer
    ) -> None:
        self._control = control
        self._shape = shape
        self._interpret = interpret
        self._serve_files = serve
        self._interpreter = 0
        self._copy: tuple[int, socket.socket] | None = None
        self._file_servers: set[int] = set()

    def serve(self) -> None:
        """Wait for the host's first word, seal the chamber, then obey until told to stop."""
        first = self._receive()
        if first is None:
            return
        abi = chamber.seal(self._shape)
        # Copies of the interpreter announce themselves here; the kernel vouches for their pid.
        self._nursery, self._cradle = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._nursery.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        wake, wakened = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._control.send(b"sealed %d" % abi)
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._nursery.fileno(), wake):
            poll.register(descriptor, select.POLLIN)
        obeying = self._obey(*first)
        while obeying:
            for descriptor, _ in poll.poll():
                if descriptor == wake:
                    os.read(wake, 512)
                    self._reap()
                elif descriptor == self._nursery.fileno():
                    self._adopt()
                else:
                    word = self._receive()
                    obeying = word is not None and self._obey(*word)

    def _receive(self) -> tuple[bytes, list[int]] | None:
        message, descriptors, _, _ = socket.recv_fds(self._control, MAX_VERB, 2)
        return (message, descriptors) if message else None

    def _obey(self, verb: bytes, descriptors: list[int]) -> bool:
        """Carry out one verb; False when it was the last."""
        try:
            if verb == b"start interpreter":
                self._start(descriptors)
            elif verb == b"start files":
                self._start_files(descriptors[0])
            elif verb == b"interrupt":
                if self._interpreter:
                    # The group, as a terminal does: os.system() waits deaf for its child.
                    os.killpg(self._interpreter, signal.SIGINT)
            elif verb in (b"replace", b"replace fresh"):
                self._replace(descriptors, keep=verb == b"replace")
            else:
                return False
        except OSError as error:
            self._control.send(b"failed " + str(error).encode()[:200])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._leave_supervisor(*descriptors, self._cradle.fileno())
            os.setsid()
            kernel.set_dumpable(True)
            chamber.limit_memory(self._shape)
            chamber.make_expendable("interpreter")
            data = socket.socket(fileno=descriptors[0])
            _run(lambda: self._interpret(data, descriptors[1], self._cradle))
        self._interpreter = pid
        self._control.send(b"running fresh")

    def _start_files(self, descriptor: int) -> None:
        pid = os.fork()
        if pid == 0:
            self._leave_supervisor(descriptor)
            line = socket.socket(fileno=descriptor)
            _run(lambda: self._serve_files(line))
        self._file_servers.add(pid)

    @staticmethod
    def _leave_supervisor(*kept: int) -> None:
        """In a child: be no supervisor any more, and hold nothing of its own but `kept`."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        borders = [2, *sorted(kept), os.sysconf("SC_OPEN_MAX")]
        for below, above in itertools.pairwise(borders):
            os.closerange(below + 1, above)

    def _adopt(self) -> None:
        """A copy of the interpreter waits: remember it, let go of the one before."""
        room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4)
        _, ancillary, _, _ = self._nursery.recvmsg(MAX_VERB, room)
        pid, lines = 0, array.array("i")
        for _, kind, data in ancillary:
            if kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
            elif kind == socket.SCM_RIGHTS:
                lines.frombytes(data[: len(data) - len(data) % 4])
        if len(lines) == 1 and pid not in (0, 1, self._interpreter):
            self._drop_copy()
            self._copy = pid, socket.socket(fileno=lines[0])
        else:
            for descriptor in lines:
                os.close(descriptor)

    def _drop_copy(self) -> None:
        if self._copy:
            pid, line = self._copy
            line.close()
            self._copy = None
            self._signal(pid, signal.SIGKILL)

    def _replace(self, descriptors: list[int], *, keep: bool) -> None:
        """End the interpreter and all that it started; put the copy or a fresh one in its place."""
        if not keep:
            self._drop_copy()
        self._interpreter = 0
        spared = {*self._file_servers, self._copy[0] if self._copy else 0, os.getpid()}
        self._signal(-1, signal.SIGSTOP)  # nothing can fork while it is stopped
        for name in os.listdir("/proc"):
            if name.isdigit():
                pid = int(name)
                self._signal(pid, signal.SIGCONT if pid in spared else signal.SIGKILL)
        self._reap()
        copy, self._copy = self._copy, None
        if copy and self._promote(*copy, descriptors):
            self._control.send(b"running copy")
        else:
            self._start(descriptors)

    def _promote(self, pid: int, line: socket.socket, descriptors: list[int]) -> bool:
        try:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                return False
            socket.send_fds(line, [b"go"], descriptors)
        except OSError:  # hostile code announced what is no child of ours, or it is gone
            self._signal(pid, signal.SIGKILL)
            return False
        finally:
            line.close()
        self._interpreter = pid
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._file_servers.discard(pid)
            if self._copy and pid == self._copy[0]:
                self._copy[1].close()
                self._copy = None
            if pid == self._interpreter:
                self._interpreter = 0
                self._control.send(b"ended %d" % status)

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
