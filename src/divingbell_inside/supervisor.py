"""Pid 1 of a session: starts, interrupts, replaces and stops the interpreter. Nothing else.

It obeys the host on the control socket, reads nothing of what user code writes, is not dumpable,
and handles no signal but SIGCHLD (the kernel drops all others that are sent to pid 1 from inside).
Its children are the interpreter, its waiting copy, and servers of files and of commands.
It answers: sealed <landlock abi> · running fresh|copy · ended <wait status> · failed <why>.
"""

import array
import contextlib
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import NoReturn

from divingbell_inside import chamber, kernel, processes

Entry = Callable[[socket.socket, int, socket.socket], None]
Server = Callable[[socket.socket], None]
Seal = Callable[[chamber.Shape], int]  # returns the Landlock ABI in force
Parts = tuple[Seal, Entry, Server, Server]  # the last two serve files, and a command
MAX_VERB = 64
_CREDENTIALS = struct.Struct("3i")


class Supervisor:
    def __init__(self, control: socket.socket, shape: chamber.Shape, parts: Parts) -> None:
        self._control, self._shape = control, shape
        self._seal, self._interpret, self._serve_files, self._serve_command = parts
        self._interpreter = 0
        self._copy: tuple[int, socket.socket] | None = None
        self._file_servers: set[int] = set()
        self._command_servers: dict[int, bytes] = {}  # with the number that the host gave

    def serve(self) -> None:
        """Wait for the host's first word, seal the chamber, then obey until told to stop."""
        first = self._receive()
        if not first[0]:
            return
        abi = self._seal(self._shape)
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
                    obeying = self._obey(*self._receive())

    def _receive(self) -> tuple[bytes, list[int]]:
        return socket.recv_fds(self._control, MAX_VERB, 2)[:2]

    def _obey(self, verb: bytes, descriptors: list[int]) -> bool:
        """Carry out one verb; False when it was the last (stop, or the host is gone)."""
        try:
            if verb == b"start interpreter":
                self._start(descriptors)
            elif verb == b"start files":
                self._file_servers.add(self._start_server(self._serve_files, descriptors[0]))
            elif verb.startswith(b"start command "):
                pid = self._start_server(self._be_command_server, descriptors[0])
                self._command_servers[pid] = verb.removeprefix(b"start command ")
            elif verb.startswith(b"end command "):
                meant = verb.removeprefix(b"end command ")
                for pid in [pid for pid, of in self._command_servers.items() if of == meant]:
                    processes.send(pid, signal.SIGKILL)  # who is left in its session: see _reap
            elif verb == b"interrupt":
                if self._interpreter:  # the group: os.system() waits deaf for its child
                    processes.send(-self._interpreter, signal.SIGINT)
                self._control.send(b"interrupted")
            elif verb in (b"replace", b"replace fresh"):
                self._replace(descriptors, keep=verb == b"replace")
            else:
                return False
        except OSError as error:
            if verb.endswith((b"interpreter", b"replace", b"fresh")):  # the host waits for these
                self._control.send(b"failed " + str(error).encode()[:200])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            kept = (*descriptors, self._cradle.fileno())
            self._leave(lambda: self._be_interpreter(*descriptors), *kept)
        self._interpreter = pid
        self._control.send(b"running fresh")

    def _be_interpreter(self, data: int, pipe: int) -> None:
        self._be_users_own()
        self._interpret(socket.socket(fileno=data), pipe, self._cradle)

    def _be_users_own(self) -> None:
        os.setsid()
        kernel.set_dumpable(True)  # else it could not write about itself in /proc
        chamber.limit_memory(self._shape)
        chamber.make_expendable("interpreter")

    def _start_server(self, serve: Server, descriptor: int) -> int:
        if not (pid := os.fork()):
            self._leave(lambda: serve(socket.socket(fileno=descriptor)), descriptor)
        return pid

    def _be_command_server(self, line: socket.socket) -> None:
        self._be_users_own()
        kernel.set_dumpable(False)  # its command may not look into it
        self._serve_command(line)

    def _leave(self, entry: Callable[[], None], *kept: int) -> NoReturn:
        """In a child: be no supervisor any more, hold nothing but `kept`, end with `entry`."""
        try:  # whatever goes wrong ends the child: it may not go on as what it was
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            kernel.close_all_but(*kept)
            chamber.become_user(self._shape)
            entry()
            os._exit(0)
        finally:
            os._exit(1)

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
            with contextlib.suppress(OSError):  # hostile code may send what is no socket
                line = socket.socket(fileno=lines.pop())
                line.setblocking(False)
                self._drop_copy()
                self._copy = pid, line
        for descriptor in lines:
            os.close(descriptor)

    def _drop_copy(self) -> None:
        if self._copy:
            (pid, line), self._copy = self._copy, None
            line.close()
            processes.send(pid, signal.SIGKILL)

    def _replace(self, descriptors: list[int], *, keep: bool) -> None:
        """End the interpreter and all that it started; put the copy or a fresh one in its place."""
        while select.select([self._nursery], [], [], 0)[0]:
            self._adopt()
        if not keep:
            self._drop_copy()
        self._interpreter = 0
        spared = {*self._file_servers, self._copy[0] if self._copy else 0, os.getpid()}
        processes.end_all_but(spared, self._reap)
        copy, self._copy = self._copy, None
        if copy and self._promote(*copy, descriptors):
            self._control.send(b"running copy")
        else:
            self._start(descriptors)

    def _promote(self, pid: int, line: socket.socket, descriptors: list[int]) -> bool:
        with line:
            try:
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    socket.send_fds(line, [b"go"], descriptors)
                    self._interpreter = pid
            except OSError:  # hostile code announced what is no child of ours, or it is gone
                processes.send(pid, signal.SIGKILL)
        return self._interpreter == pid

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                self._file_servers.discard(pid)
                if self._command_servers.pop(pid, None) is not None:
                    processes.end_session(pid)
                if self._copy and pid == self._copy[0]:
                    self._drop_copy()
                if pid == self._interpreter:
                    self._interpreter = 0
                    self._control.send(b"ended %d" % status)
