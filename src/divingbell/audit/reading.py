"""Reading the log: the records of all chains of a folder, in the order of their times."""

import heapq
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from divingbell.audit.chain import MOST_LINE, Broken, record_in
from divingbell.audit.segments import NAME
from divingbell.errors import ConfigError
from divingbell.host import owned_folder

Record = dict[str, Any]
KINDS = (
    "session", "session.opened", "session.ended",
    "execution", "execution.started", "execution.ended", "execution.refused",
    "command", "command.started", "command.ended", "command.refused",
    "call", "call.started", "call.ended", "approval", "approval.asked", "approval.answered",
    "signed_in", "sign_in.failed", "revealed", "skill", "skill.changing", "skill.saved",
    "skill.used", "skill.removed", "log", "log.begun", "log.closed", "log.gap", "log.checked",
)  # fmt: skip
OUTCOMES = (
    "ok", "denied", "refused", "failed", "cancelled", "error", "timeout", "limit", "killed",
    "left", "not started", "yes", "no", "always", "session", "nobody",
)  # fmt: skip
AHEAD = b"\0"
AT_ONCE = 1 << 14
"""Bytes of a file that are read at once, but for a last line. So many are in memory of each chain
whose records are put in the order of their times."""


def segments_in(folder: Path) -> dict[str, dict[int, Path]]:
    """Return the files of each chain by their numbers; chains by when they began.

    Raises:
        ConfigError: the folder can't be read, or can be changed by others.
    """
    found: dict[str, dict[int, Path]] = {}
    try:
        if not owned_folder.check(folder):
            return {}
        for name in sorted(os.listdir(folder)):
            if match := NAME.fullmatch(name):
                found.setdefault(match[1], {})[int(match[2])] = folder / name
    except owned_folder.NotOurs:
        raise
    except OSError as error:
        raise unreadable(folder, error) from error
    return found


def unreadable(path: Path, error: OSError) -> ConfigError:
    """Return what is said where the log can't be read."""
    return ConfigError(
        f"the audit log in {path} can't be read ({error.strerror}): run this as the user, and with "
        "the settings (--config), of the server that writes it"
    )


def lines_of(path: Path, at: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file; one that is too long comes in pieces, none of which is a line.

    With `at` they are those from this byte on, where the first may lack its start.

    Zeros at its end were written ahead, and are left out. What comes after zeros is no line. The
    file is not held open: a folder may have more of them than a process may open.

    Raises:
        ConfigError: it can't be read.
    """
    before = b""
    while pieces := _pieces(path, at):
        for line in pieces:
            at += len(line)
            text = line.rstrip(AHEAD)
            if text:
                yield before + text
            if text != line:
                before = AHEAD


def _pieces(path: Path, at: int) -> list[bytes]:
    """Return lines of a file from this byte on, some of them; none at its end."""
    try:
        with open(path, "rb") as file:
            file.seek(at)
            return list(itertools.takewhile(bool, _some(file)))
    except OSError as error:
        raise unreadable(path, error) from error


def _some(file: BinaryIO) -> Iterator[bytes]:
    size = 0
    while size < AT_ONCE:
        line = file.readline(MOST_LINE)
        size += len(line)
        yield line


Ends = dict[Path, int]
"""How many bytes of each file were read."""


def records(folder: Path, ends: Ends | None = None) -> Iterator[Record]:
    """Yield the records of all chains by their times; lines that are broken are left out.

    With `ends` they are those behind the ends, which are set to where reading stopped: at the first
    line of a file that is no record, which may be one that is still being written.

    Raises:
        ConfigError: the log can't be read.
    """
    read = {} if ends is None else ends
    chains = [_of_chain(chain, files, read) for chain, files in segments_in(folder).items()]
    yield from heapq.merge(*chains, key=lambda record: str(record.get("at")))


def _of_chain(chain: str, files: dict[int, Path], ends: Ends) -> Iterator[Record]:
    for _, path in sorted(files.items()):
        is_whole, end = True, ends.get(path, 0)
        for line in lines_of(path, end):
            try:
                record, _ = record_in(line, None)
            except Broken:
                is_whole = False
                continue  # `audit verify` tells of it
            if is_whole:
                end = ends[path] = end + len(line)
            record.pop("chain", None)  # a line that somebody has forged may say anything
            yield {"chain": chain} | record


@dataclass(frozen=True, slots=True)
class Wanted:
    """The records that are looked for. What is empty does not count."""

    user: str = ""
    session: str = ""
    tags: tuple[str, ...] = ()
    """What stands for the user and the session where their names are personal: see `Key.tag`."""
    tool: str = ""
    kind: str = ""
    outcome: str = ""
    since: str = ""
    text: str = ""

    def has(self, record: Record) -> bool:
        """Return whether a record is one of them."""
        outcome = record.get("outcome") or record.get("status") or record.get("answer")
        return (
            self._is_named(record.get("user"), self.user)
            and self._is_named(record.get("session"), self.session)
            and _begins(record.get("tool") or record.get("server"), self.tool)
            and _begins(record.get("kind"), self.kind)
            and self.outcome in ("", outcome)
            and str(record.get("at")) >= self.since
            and (not self.text or self.text.lower() in _written(record))
        )

    def _is_named(self, written: object, name: str) -> bool:
        tagged = str(written).rpartition(" ")[2] in self.tags
        return not name or written == name or tagged


def _begins(name: object, start: str) -> bool:
    """Whether a name with dots is this one, or below it: `shop` has `shop.refund`."""
    return not start or f"{name}." == f"{start}." or str(name).startswith(f"{start}.")


def _written(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False).lower()


def moment(text: str) -> str:
    """Return a time as records have it, of one in ISO 8601; without a zone it is UTC.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text[:40]!r} is no time: write it as 2026-11-17 or 2026-11-17T18:30"
        ) from None
    known = found if found.tzinfo else found.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
