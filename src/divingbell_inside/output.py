"""Output of the interpreter: text, displays and answers, in the order they came.

Two ways lead out. Whatever writes to descriptor 1 or 2 (print, C code, subprocesses) goes down
one pipe that the host reads. What needs a label (stderr of Python, displays, text of a thread
that an earlier cell started) goes as a frame on the data socket, and a *mark* in the pipe says
where in the text it belongs. The mark starts with bytes that the host chose at random. User
code can forge it, and then garbles the order of its own output, no more.
"""

import contextlib
import io
import os
import socket
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from divingbell_inside import frames

PIECE = 1 << 16

cell_of_task: ContextVar[int] = ContextVar("cell")
"""The cell that a task belongs to; asyncio copies it into every task that is created."""


class Outlet:
    """The sending end. One a process; `current` is what the streams write to."""

    def __init__(self, data: socket.socket, pipe: int, mark: bytes) -> None:
        self._data: socket.socket | None = data
        self._pipe = pipe
        self._mark = mark
        self._lock = threading.Lock()
        self._number = 0
        self._main = threading.get_ident()
        self.cell = 0
        """The cell that runs, or ran last."""
        self.running = False
        self.busy = False
        """The main thread is in the middle of a frame: an interrupt must wait."""
        self.interrupted = False
        self.stdout: Stdout | None = None
        self.telling: Callable[[], None] | None = None
        """Tells what the host shall know before it shows what is written next."""

    def tell(self) -> None:
        """Tell it, unless this is another thread or process, or nobody asked."""
        telling = self.telling
        if telling is not None and self.attached and threading.get_ident() == self._main:
            self.telling = None  # it writes nothing itself, but code of the user's may
            try:
                telling()
            finally:
                self.telling = telling

    def origin(self) -> int:
        """The cell whose code is writing."""
        if threading.get_ident() == self._main:
            return cell_of_task.get(self.cell)
        return getattr(threading.current_thread(), "divingbell_cell", self.cell)

    def send(self, *packed: bytes) -> None:
        """Send whole frames; an interrupt is held back until they are out."""
        mine = threading.get_ident() == self._main
        if mine:
            self.busy = True
        try:
            with self._lock:
                if self._data is None:
                    return
                self._data.sendall(b"".join(packed))
        finally:
            if mine:
                self.busy = False
        if mine and self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def event(self, header: frames.Header, body: bytes = b"") -> None:
        """Send an event that has its place among the text."""
        if threading.get_ident() == self._main and self.stdout is not None:
            with contextlib.suppress(ValueError, OSError):  # closed by user code
                self.stdout.flush()
        with self._lock:
            self._number = number = (self._number + 1) & 0xFFFFFFFF
        self.send(frames.pack({"cell": self.origin(), **header, "n": number}, body))
        os.write(self._pipe, self._mark + number.to_bytes(frames.MARK_NUMBER_SIZE, "big"))

    def text(self, name: str, text: str, cell: int) -> None:
        """Send text of the stream `name` as events."""
        for start in range(0, len(text), PIECE // 4):
            # Whole characters, of which the longest have four bytes.
            raw = text[start : start + PIECE // 4].encode("utf-8", "backslashreplace")
            self.event({"event": name, "cell": cell}, raw)

    @property
    def attached(self) -> bool:
        return self._data is not None

    def detach(self) -> None:
        """In a forked child: the line to the host belongs to the parent alone."""
        if self._data is not None:
            self._data.close()
            self._data = None
        self._lock = threading.Lock()


class Stdout(io.TextIOWrapper):
    """sys.stdout: straight into the pipe, unless another cell's thread or task writes."""

    def __init__(self, outlet: Outlet) -> None:
        raw = io.BufferedWriter(io.FileIO(1, "w", closefd=False), PIECE)
        super().__init__(raw, "utf-8", "backslashreplace", "\n", line_buffering=True)
        self._outlet = outlet
        outlet.stdout = self

    def write(self, text: str, /) -> int:
        outlet = self._outlet
        if outlet.telling is not None:
            outlet.tell()
        origin = outlet.origin()
        if (outlet.running and origin == outlet.cell) or not outlet.attached:
            return super().write(text)
        _check_text(text)
        outlet.text("stdout", text, origin)
        return len(text)


class Stderr(io.TextIOBase):
    """sys.stderr: labelled frames, so that it can be told from stdout."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.buffer = _StderrBytes(self)
        # By line, as Python does it: print() writes the text and the newline one by one.
        self._pending = ""
        self._origin = 0

    def write(self, text: str, /) -> int:
        _check_text(text)
        if not self._outlet.attached:
            os.write(2, text.encode("utf-8", "backslashreplace"))
            return len(text)
        self._outlet.tell()
        origin = self._outlet.origin()
        if origin != self._origin:
            self.flush()
            self._origin = origin
        self._pending += text
        if "\n" in text or "\r" in text or len(self._pending) > PIECE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        pending, self._pending = self._pending, ""
        if pending and self._outlet.attached:
            self._outlet.text("stderr", pending, self._origin)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return False


class _StderrBytes(io.RawIOBase):
    def __init__(self, stream: Stderr) -> None:
        self._stream = stream

    def write(self, data: Any, /) -> int:
        raw = bytes(data)
        self._stream.write(raw.decode("utf-8", "backslashreplace"))
        return len(raw)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def open_stream(name: str, outlet: Outlet) -> Any:
    """Return a new sys.stdin, sys.stdout or sys.stderr."""
    if name == "stdin":
        return open(0, encoding="utf-8", closefd=False)
    return Stdout(outlet) if name == "stdout" else Stderr(outlet)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"write() argument must be str, not {type(text).__name__}")


def remember_cells_of_threads(outlet_of: Any) -> None:
    """Note on every thread which cell started it."""
    start = threading.Thread.start

    def noting_start(self: threading.Thread) -> None:
        outlet = outlet_of()
        if outlet is not None:
            self.divingbell_cell = outlet.origin()  # type: ignore[attr-defined]
        start(self)

    threading.Thread.start = noting_start  # type: ignore[method-assign]
