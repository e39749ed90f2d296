"""The log of a stdio server: its stderr, kept in a file, capped, without its secrets and without
anyone's personal data."""

import asyncio
import codecs
import contextlib
import os
import re
import threading
import time
from collections import deque
from pathlib import Path
from typing import cast

from divingbell import text
from divingbell.border.privacy.blotter import BLOTTER, could_be
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.host import owned_folder

MAX_SIZE = 1 << 20
MAX_LINE = 4096
MAX_RATE = 1 << 20
"""Bytes a second that are read; a server that says more waits."""
MAX_SEARCH = 0.05
"""Seconds of processor time in each second for personal data in what a server says. Words in which
there is too much of it are left out. A server that says a megabyte a second takes 0.02."""
MAX_WAITING = 1 << 18
"""Characters that wait for what searches to be made."""
PIECE = 1 << 14
LAST_LINES = 3
LAST_WORDS = 400


_REST_OF_KEY = re.compile(
    r"(?:[ \t]{0,40}[A-Za-z0-9+/=]{1,100}[ \t\r]{0,4}\n)*+"
    r"(?:[ \t]{0,40}-----END [A-Z ]{0,60}-----\n?)?"
)
"""Lines of base64, and the last line of a key."""


class ServerLog:
    """The file `<folder>/<server>.log`, and the one before it, `.log.1`.

    Only the owner can read them.
    """

    def __init__(self, folder: Path, name: str, redactor: Redactor) -> None:
        self.path = folder / f"{name}.log"
        self._redactor = redactor
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._is_made = False
        self._lock = threading.RLock()
        self._waiting: list[str] = []
        self._spent, self._second = 0.0, 0.0
        self._in_key = False
        self._begin()

    def begin(self) -> None:
        """Mark the start of a server."""
        self._is_made = False
        self._begin()
        self._write(f"--- started {time.strftime('%Y-%m-%d %H:%M:%S%z')}\n", is_ours=True)

    def _begin(self) -> None:
        self._last.clear()
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def note(self, words: str) -> None:
        """Write a line of ours."""
        self._write(f"--- {self._cleaned(words)}\n")

    def listener(self) -> asyncio.Protocol:
        """Return the reader of the stderr of one run."""
        return _Listener(self)

    def last_words(self) -> str:
        """Return the last lines as one, capped, for an error that says why a server died."""
        self.flush()
        words = " / ".join(line for line in self._last if line)
        return words if len(words) <= LAST_WORDS else "…" + words[-LAST_WORDS:]

    def readable(self, said: bytes, *, is_whole: bool) -> str:
        """Return words of the server without its secrets; of one that the end cuts, nothing."""
        words = self._cleaned(said.decode("utf-8", "replace"))
        return words if is_whole else words[: max(0, len(words) - self._redactor.reach)]

    def take(self, data: bytes) -> None:
        """Take more of what the server says."""
        said = self._rest + self._decoder.decode(data)
        lines, newline, self._rest = said.rpartition("\n")
        if newline:
            self._lines(lines)
        # A line without an end is cut, but not within a secret: those that are whole are blotted
        # out first, and one that is still to come can only begin in what is kept.
        reach = self._redactor.reach
        if len(self._rest) >= MAX_LINE + reach:
            self._rest = self._redactor.clean(self._rest)
            cut = max(0, len(self._rest) - reach) // MAX_LINE * MAX_LINE
            if cut:
                self._lines(self._rest[:cut])
                self._rest = self._rest[cut:]

    def flush(self) -> None:
        """Write the last line, if it has no end."""
        self._rest += self._decoder.decode(b"", final=True)
        if self._rest:
            rest, self._rest = self._rest, ""
            self._lines(rest)

    def _lines(self, lines: str) -> None:
        # All at once: a secret with a line break in it is found too.
        shown = [
            line[start : start + MAX_LINE]
            for line in self._cleaned(lines).split("\n")
            for start in range(0, len(line) or 1, MAX_LINE)
        ]
        self._last.extend(line.strip() for line in shown if line.strip())
        self._write("\n".join(shown) + "\n")

    def _cleaned(self, words: str) -> str:
        return text.uncovered(self._redactor.clean(words))

    def _write(self, text: str, *, is_ours: bool = False) -> None:
        with self._lock:
            if not self._waiting and (is_ours or BLOTTER.is_made or not could_be(text)):
                self._append(text if is_ours else self._blotted(text))
                return
            self._waiting.append(text)
            if BLOTTER.is_made or sum(map(len, self._waiting)) > MAX_WAITING:
                self._release()
            elif len(self._waiting) == 1:
                BLOTTER.make(self._release)

    def _release(self) -> None:
        """Write what waits; called by another thread, too."""
        with self._lock:
            text, self._waiting = "".join(self._waiting), []
            if text:
                self._append(self._blotted(text))

    def _blotted(self, text: str) -> str:
        """Words without personal data, as far as the time for them goes."""
        shown = []
        text = self._without_begun_key(text)
        while text:
            # To the end of a line, if there is one.
            end = len(text) if len(text) <= PIECE else text.rfind("\n", 0, PIECE) + 1 or PIECE
            shown.append(self._blotted_piece(text[:end]))
            text = text[end:]
        return "".join(shown)

    def _blotted_piece(self, piece: str) -> str:
        now = time.monotonic()
        if now - self._second > 1.0:
            self._second, self._spent = now, 0.0
        if self._spent > MAX_SEARCH:
            return f"[left out: {len(piece):,} characters with too much to search]\n"
        started = time.thread_time()
        shown = BLOTTER.blotted(piece, MAX_SEARCH)
        self._spent += time.thread_time() - started
        return shown if shown.endswith("\n") else shown + "\n"

    def _without_begun_key(self, text: str) -> str:
        """Take the rest of a private key away that began in words which are written already."""
        if self._in_key:
            rest = _REST_OF_KEY.match(text)
            self._in_key = rest is not None and rest.end() == len(text)
            text = text[rest.end() :] if rest else text
        begun = text.rfind("-----BEGIN ")
        if begun >= 0 and "PRIVATE KEY" in text[begun : begun + 60]:
            self._in_key = "-----END " not in text[begun:]
        return text

    def _append(self, text: str) -> None:
        # A full disk or a folder that went away must not take the server down.
        with contextlib.suppress(OSError):
            if not self._is_made:  # once for each start: a server may write line by line
                owned_folder.make(self.path.parent, 0o700)
                self._is_made = True
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_size > MAX_SIZE:
                    os.replace(self.path, self.path.with_suffix(".log.1"))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, text.encode("utf-8", "replace"))
            finally:
                os.close(descriptor)


class _Listener(asyncio.Protocol):
    def __init__(self, server_log: ServerLog) -> None:
        self._log = server_log
        self._read = 0
        self._second = 0.0
        self._pipe: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast(asyncio.ReadTransport, transport)  # uvloop's is none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        self._log.take(data)
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._second > 1.0:
            self._second, self._read = now, 0
        self._read += len(data)
        if self._read > MAX_RATE and self._pipe is not None:
            self._pipe.pause_reading()
            loop.call_later(1.0, self._go_on)

    def _go_on(self) -> None:
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._log.flush()
