"""A real terminal (a pty), and the person at it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .command import COMMAND, PATIENCE, environment

CTRL_C, CTRL_D, UP, ENTER = "\x03", "\x04", "\x1b[A", "\r"
TAB = "\t"
PROMPT = ">>>"  # the space after it is drawn by moving the cursor
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
_ON_A_TERMINAL = (
    "import fcntl, os, sys, termios\nos.setsid()\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Screen:
    """What a person sees and types."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.raw = ""
        self._seen = 0

    def type(self, *keys: str) -> None:
        os.write(self._descriptor, "".join(keys).encode())

    def expect(self, text: str) -> str:
        """Wait for a text, from where the last one ended; return what came before it."""
        give_up = time.monotonic() + PATIENCE
        while (found := self._text().find(text, self._seen)) < 0:
            assert self._read(give_up - time.monotonic()), f"no {text!r} in {self._text()!r}"
        before = self._text()[self._seen : found]
        self._seen = found + len(text)
        return before

    def run(self, code: str) -> str:
        """Type a line; return what was shown until the next prompt (with what was typed)."""
        self.type(code, ENTER)
        return self.expect("\n" + PROMPT)

    def leave(self) -> int:
        """Wait for the end; return the exit status."""
        give_up = time.monotonic() + PATIENCE
        while self._read(give_up - time.monotonic()):
            pass
        return self._process.wait(PATIENCE)

    def _text(self) -> str:
        return _SEQUENCE.sub("", self.raw)

    def _read(self, patience: float) -> bool:
        if not select.select((self._descriptor,), (), (), max(patience, 0))[0]:
            return False
        try:
            data = os.read(self._descriptor, 1 << 16)
        except OSError:  # how a pty says that the other end is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def at_a_terminal(
    folder: Path, *arguments: str, program: str | Path = COMMAND, **more: str
) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    variables = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder)}
    inherited = {
        key: value
        for key, value in environment().items()
        if key not in ("TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX")
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL, program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=inherited | variables | more,
    )
    os.close(theirs)
    with process:
        try:
            yield Screen(process, ours)
        finally:
            process.kill()
            os.close(ours)
