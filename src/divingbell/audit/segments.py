"""Segments: the files of one chain, written by one process.

    20261117T183500Z-5f3a91c2-000001.jsonl

Each process has a chain of its own, so that two can use one folder. A batch of records is written
and synced, or taken back: after a failure the file ends where it did before, and so does the chain.
"""

import contextlib
import fcntl
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from divingbell.audit.chain import Link, line_of
from divingbell.host import owned_folder

Record = Mapping[str, Any]
VERSION = 1
ENDING = ".jsonl"
NAME = re.compile(r"(\d{8}T\d{6}Z-[0-9a-f]{8})-(\d{6})\.jsonl")
_MADE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def now(at: float | None = None) -> str:
    """Return a time as records have it: UTC, with microseconds."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def chain_name() -> str:
    """Return a name that no other chain has; they sort by when they began."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


class Segments:
    """Writes the chain of this process. Not for two threads at once.

    `begin` is said in the first record of each file. The folder is made with the first batch.
    """

    def __init__(self, folder: Path, most: int, begin: Record) -> None:
        self.folder = folder
        self.chain = chain_name()
        self.end = Link()
        """The last record that is on the disk."""
        self._most = most
        self._begin = begin
        self._file = -1
        self._size = 0
        self._count = 0
        self._is_torn = False

    def write(self, records: Sequence[Record], sync: Callable[[int], None] = os.fdatasync) -> None:
        """Write records and have them on the disk, all of them or none.

        Raises:
            OSError: it can't be done; the file and the chain are as they were before.
        """
        if self._is_torn:
            self._take_back()
        if self._file < 0 or self._size >= self._most:
            self._next()
        lines, end = _lines(records, self.end)
        self._is_torn = True
        try:
            _write_all(self._file, b"".join(lines))
            sync(self._file)
        except BaseException:
            # What could not be synced may be written or not: the kernel forgets which.
            with contextlib.suppress(OSError):
                self._take_back()
            raise
        self._is_torn = False
        self._size += sum(map(len, lines))
        self.end = end

    def close(self) -> None:
        """Close the file. A later batch would begin another one."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _take_back(self) -> None:
        os.ftruncate(self._file, self._size)
        self._is_torn = False

    def _next(self) -> None:
        """Begin the next file. It is there with its first record, or not at all."""
        owned_folder.make(self.folder, 0o700)
        path = self.folder / f"{self.chain}-{self._count + 1:06}{ENDING}"
        opened = os.open(path, _MADE, 0o600)
        try:
            # Held for as long as this process writes: whoever verifies sees that more may come.
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lines, end = _lines([self._first()], self.end)
            _write_all(opened, lines[0])
            os.fsync(opened)
            _sync_folder(self.folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(opened)
            raise
        self.close()
        self._file, self._size, self._is_torn = opened, len(lines[0]), False
        self._count += 1
        self.end = end

    def _first(self) -> Record:
        return {
            "at": now(),
            "kind": "log.begun",
            "version": VERSION,
            "chain": self.chain,
            "segment": self._count + 1,
            "host": socket.gethostname(),
            "process": os.getpid(),
            **self._begin,
        }


def _lines(records: Iterable[Record], end: Link) -> tuple[list[bytes], Link]:
    lines = []
    for record in records:
        line, end = line_of(record, end)
        lines.append(line)
    return lines, end


def _write_all(opened: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(opened, left) :]


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
