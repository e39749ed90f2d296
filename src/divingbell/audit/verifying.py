"""Verifying the log: whether it is as it was written, told apart by what could have happened.

- *whole*: each record follows the one before, and a signed head proves all of them;
- *torn*: the same, and its process was killed while it wrote: the last line is incomplete;
- *unproven*: the records follow each other, and no head that the key has signed says so of all;
- *cut*: there were more records than there are;
- *changed*: something else stands there than was written.

Hashes alone can be computed again by whoever changes a record; the heads can't. So nothing that a
record says of itself excuses that it has no head, its time least of all.
"""

import fcntl
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from divingbell.audit import heads as kept_heads
from divingbell.audit import reading
from divingbell.audit.chain import Broken, Link, record_in
from divingbell.audit.signing import Head

Verdict = Literal["whole", "torn", "unproven", "cut", "changed"]
BAD: tuple[Verdict, ...] = ("unproven", "cut", "changed")
PATIENCE = 10.0
"""Seconds in which a process that still writes has to sign what was there. It does so each second:
the rest is for a machine that is very busy. Anybody who can read a file can hold its lock, so that
alone excuses nothing."""
PAUSE = 0.1
SET_BACK = 60.0
"""Seconds by which a record may be older than the one before it: what has happened is written
after what is about to be done, and later where the disk was full."""


@dataclass(slots=True)
class Verified:
    """One chain, looked at."""

    chain: str
    verdict: Verdict = "whole"
    why: str = ""
    records: int = 0
    proven: int = 0
    """Records that a signed head proves."""
    running: bool = False
    """Whether a process still writes it."""
    closed: bool = False
    """Whether its process has closed it; if not, it was killed, or still runs."""
    clock_set_back: int = 0
    """Times that a record has an earlier time than the one before: numbers say the order."""
    dropped: int = 0
    """Events that found no room while its disk was full, as it says itself."""
    open_calls: list[int] = field(default_factory=list)
    """Calls that were begun, and whose end is not recorded: they may have been made."""

    def _judge(self, verdict: Verdict, why: str) -> "Verified":
        self.verdict, self.why = verdict, why
        return self


def verify(folder: Path, heads: Path, public: str) -> list[Verified]:
    """Return what is found of each chain that there are files or heads of.

    Raises:
        ConfigError: the log can't be read.
    """
    files = reading.segments_in(folder)
    try:
        names = sorted({*files, *kept_heads.chains(heads)})
        return [_verified(name, files.get(name, {}), folder, heads, public) for name in names]
    except OSError as error:
        raise reading.unreadable(heads, error) from error


def _verified(
    chain: str, files: dict[int, Path], folder: Path, heads: Path, public: str
) -> Verified:
    # The head first: a chain that is being written only grows meanwhile.
    head, forged = kept_heads.newest(heads, chain, public)
    found = _looked(chain, files, head, forged)
    if not (found.running and found.verdict == "whole" and found.proven < found.records):
        return found
    # What comes while this waits is seconds old, whatever it says.
    head, forged = _signed_up_to(found.records, heads, chain, public)
    if head is None or head.link.number < found.records:
        return found._judge(
            "unproven",
            f"a process holds it, and has not signed the last {found.records - found.proven:,} "
            f"records in {PATIENCE:g} s",
        )
    # It may have begun another file meanwhile.
    return _looked(chain, reading.segments_in(folder).get(chain, files), head, forged)


def _signed_up_to(number: int, heads: Path, chain: str, public: str) -> tuple[Head | None, int]:
    """Return the newest head, once it is of this record or a later one, or when time is up."""
    deadline = time.monotonic() + PATIENCE
    while True:
        head, forged = kept_heads.newest(heads, chain, public)
        if (head is not None and head.link.number >= number) or time.monotonic() > deadline:
            return head, forged
        time.sleep(PAUSE)


def _looked(chain: str, files: dict[int, Path], head: Head | None, forged: int) -> Verified:
    look = _Look(chain, head)
    found = look.found
    if not files:
        if head is None:
            return found._judge("unproven", "there is no file of it, and no head that is signed")
        return found._judge("cut", f"all of its {head.link.number:,} records are gone")
    found.running = _is_held(files[max(files)])
    missing = [number for number in range(1, max(files) + 1) if number not in files]
    if missing:
        return found._judge("cut", f"file {missing[0]} of {max(files)} is missing")
    for number, path in sorted(files.items()):
        if not look.file(path, is_last=number == max(files)):
            return found
    return look.judged(forged)


def _is_held(path: Path) -> bool:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


class _Look:
    """The look at one chain, from its first record on."""

    def __init__(self, chain: str, head: Head | None) -> None:
        self.found = Verified(chain)
        self._head = head
        self._end = Link()
        self._last_at = 0.0
        self._open: dict[int, int] = {}
        self._proves = head is None
        self._is_torn = False

    def file(self, path: Path, *, is_last: bool) -> bool:
        """Take the records of a file; return whether there is a reason to go on."""
        for line in reading.lines_of(path):
            if self.found.closed:
                return self._changed(path, "the log was closed before it")
            if not line.endswith(b"\n") and is_last:
                self._is_torn = True  # the last line of all, unless more comes: then it is broken
                continue
            try:
                if self._is_torn:
                    raise Broken("the line before it has no end")
                record, self._end = record_in(line, self._end)
            except Broken as broken:
                return self._changed(path, broken)
            self.found.records += 1
            self._take(record)
            if not self._agrees():
                return False
        return True

    def _changed(self, path: Path, how: object) -> bool:
        number = self.found.records + 1
        self.found._judge("changed", f"{path.name}, record {number:,}: {how}")
        return False

    def _agrees(self) -> bool:
        """Return whether the head says the same, where it is about this record."""
        if self._head is None or self._head.link.number != self._end.number:
            return True
        if self._head.link.hash != self._end.hash:
            self.found._judge(
                "changed",
                f"record {self._end.number:,} is not the one that was signed: records up to it "
                "were changed, and their hashes computed again",
            )
            return False
        self._proves = True
        self.found.proven = self._end.number
        return True

    def _take(self, record: reading.Record) -> None:
        at, kind = _moment(record.get("at")), record.get("kind")
        if at is not None:
            self.found.clock_set_back += at < self._last_at - SET_BACK
            self._last_at = at
        self.found.closed = kind == "log.closed"
        if kind == "log.gap" and isinstance(count := record.get("count"), int):
            self.found.dropped += count
        call = record.get("call")
        if kind == "call.started" and isinstance(call, int):
            self._open[call] = self.found.records
        elif kind == "call.ended" and isinstance(call, int):
            self._open.pop(call, None)

    def judged(self, forged: int) -> Verified:
        found, head = self.found, self._head
        if not found.running:
            found.open_calls = sorted(self._open)
        if not self._proves:
            assert head is not None
            return found._judge(
                "cut", f"{head.link.number:,} records were signed, and {found.records:,} are there"
            )
        if head is None and found.records <= 1 and not found.running:
            return found._judge("torn", "its process was killed before it had written anything")
        if head is None:
            return found._judge("unproven", "no head of it is signed by this key")
        if forged:
            return found._judge(
                "unproven", f"{forged:,} heads that claim to go further are not signed by this key"
            )
        if not found.running and found.proven < found.records:
            return found._judge("unproven", self._unsigned())
        if self._is_torn and not found.running:
            return found._judge("torn", "its process was killed while it wrote the last line")
        return found

    def _unsigned(self) -> str:
        found = self.found
        words = f"the last {found.records - found.proven:,} records have no head"
        if found.closed:
            return words
        return (
            f"whole up to record {found.proven:,}; {words}: its process was killed before it "
            "signed them, or somebody has added them later"
        )


def _moment(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
