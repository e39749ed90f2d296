"""The command server of a session: a child of pid 1 that runs one command and passes on its output.

It runs inside, with the session's own view, rights and limits, and is the first of a session of its
own (setsid): when it ends, pid 1 ends everyone who is left in that. It never holds more than one
piece of output: while the host does not read, the command waits to write.
"""

import contextlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
from typing import Any

from divingbell_inside import frames, layout, stumbles

PIECE = 1 << 16
"""Bytes that a pipe holds."""
LAST_WORDS = 1 << 20
"""Bytes that are read of a stream after the command has ended: what a pipe can hold at most. One
that it has left running may write without end."""
LAST_SEEN = 1 << 14
"""Bytes of stderr that are looked at when the command has failed: tracebacks are at its end."""
NOT_FOUND, NOT_RUN = 127, 126
"""Exit codes, as a shell has them."""


def serve(line: socket.socket) -> None:
    """Run the one command that the host asks for."""
    request = frames.receive(line)
    if request is None:
        return
    header, body = request
    asked = json.loads(body[: header["request"]])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # pid 1 ignores it, and programs inherit that
    try:
        os.chdir(asked["cwd"])
    except OSError as error:
        line.sendall(frames.pack({"event": "refused", "reason": os.strerror(error.errno or 0)}))
        return
    _Command(line, asked, body[header["request"] :]).run()


class _Command:
    """One command: its process, its streams and the line to the host."""

    def __init__(self, line: socket.socket, asked: dict[str, Any], given: bytes) -> None:
        self._line = line
        self._asked = asked
        self._unwritten = memoryview(given)
        self._unsent = memoryview(b"")
        self._last_seen = b""
        self._wake, wakened = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Run it to its end, or until the host has gone."""
        try:
            self._process = self._start()
        except OSError as error:
            self._refuse(error)
            return
        self._line.sendall(frames.pack({"event": "began", "pid": self._process.pid}))
        self._streams = {
            stream.fileno(): name
            for name in ("stdout", "stderr")
            if (stream := getattr(self._process, name))
        }
        for descriptor in self._streams:
            os.set_blocking(descriptor, False)
        if self._process.stdin:
            os.set_blocking(self._process.stdin.fileno(), False)
        while self._process.poll() is None:
            if not self._turn():
                return
        self._finish()

    def _start(self) -> "subprocess.Popen[bytes]":
        shell = [layout.ENVIRONMENT["SHELL"], "-c"]
        return subprocess.Popen(
            self._asked["words"] or [*shell, self._asked["text"]],
            bufsize=0,
            env={**os.environ, **self._asked["env"]},
            stdin=subprocess.PIPE if self._unwritten else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )

    def _refuse(self, error: OSError) -> None:
        """Say why it could not be started, as a shell would."""
        missing = isinstance(error, FileNotFoundError)
        reason = "not found" if missing else os.strerror(error.errno or 0)
        words = f"{self._asked['words'][0] if self._asked['words'] else 'sh'}: {reason}\n"
        self._line.sendall(frames.pack({"event": "stderr"}, words.encode("utf-8", "replace")))
        limit = "processes" if isinstance(error, BlockingIOError) else None
        self._line.sendall(self._ended(NOT_FOUND if missing else NOT_RUN, limit))

    def _turn(self) -> bool:
        """Wait until something can be done, and do it; False where the host has gone."""
        given = self._process.stdin
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._line, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        for descriptor in self._streams if not self._unsent else ():
            poll.register(descriptor, select.POLLIN)
        if given and not given.closed:
            poll.register(given, select.POLLOUT)
        for descriptor, happened in poll.poll():
            if descriptor == self._wake:
                os.read(self._wake, 512)
            elif descriptor == self._line.fileno():
                if happened & select.POLLOUT:
                    self._send()
                if happened & ~select.POLLOUT and not self._obey():
                    return False
            elif descriptor in self._streams:
                self._read(descriptor)
            else:
                self._write()
        return True

    def _obey(self) -> bool:
        """Carry out what the host asks for; False where it has gone."""
        request = frames.receive(self._line)
        if request is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, request[0]["signal"])
        return True

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sent = self._line.send(self._unsent, socket.MSG_DONTWAIT)
            self._unsent = self._unsent[sent:]

    def _read(self, descriptor: int) -> None:
        """Take a piece of a stream. There may be one of the other too: that waits its turn."""
        if self._unsent:
            return
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if data:
            self._unsent = memoryview(self._packed(self._streams[descriptor], data))
            self._send()
        else:
            del self._streams[descriptor]

    def _packed(self, name: str, data: bytes) -> bytes:
        """Return a piece of a stream as a frame."""
        if name == "stderr":
            self._last_seen = (self._last_seen + data[-LAST_SEEN:])[-LAST_SEEN:]
        return frames.pack({"event": name}, data)

    def _write(self) -> None:
        """Pass a piece of the input on; all else is lost where the command reads no more."""
        given = self._process.stdin
        assert given is not None
        try:
            written = os.write(given.fileno(), self._unwritten[:PIECE])
            self._unwritten = self._unwritten[written:]
        except BlockingIOError:
            return
        except OSError:
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            given.close()

    def _finish(self) -> None:
        """Pass on what is still in the pipes, and say how it ended."""
        self._line.sendall(self._unsent)
        for descriptor, name in list(self._streams.items()):
            left = LAST_WORDS
            with contextlib.suppress(BlockingIOError):
                while left > 0 and (data := os.read(descriptor, PIECE)):
                    self._line.sendall(self._packed(name, data))
                    left -= len(data)
        self._line.sendall(self._ended(self._process.returncode))

    def _ended(self, code: int, limit: str | None = None) -> bytes:
        error = {"stumble": self._stumble(code) if code else None, "limit": limit}
        return frames.pack({"event": "ended", "code": code, "error": error})

    def _stumble(self, code: int) -> stumbles.Stumble | None:
        text = self._asked["text"] or shlex.join(self._asked["words"])
        return (
            stumbles.traceback_stumble(self._last_seen.decode("utf-8", "replace"))
            or stumbles.program_stumble(text)
            or (("program", "") if code == NOT_FOUND else None)
        )
