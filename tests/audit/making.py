"""Logs for the tests: written by the real parts, in a folder of the test's own."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from divingbell.audit import opening, reading, verifying
from divingbell.audit.log import AuditLog
from divingbell.audit.signing import load_key
from divingbell.border.border import Border, OpenBorder
from divingbell.journal.events import CallEnded, CallSent
from divingbell.principal import Principal
from divingbell.settings.config import load

ANNA = Principal("anna", "one", "library")


@asynccontextmanager
async def writing(
    folder: Path, border: Border | None = None, **settings: Any
) -> AsyncIterator[AuditLog]:
    """A log in `folder/log`, with heads in `folder/heads`, and its key beside them."""
    table = {"folder": str(folder / "log"), "heads": str(folder / "heads")}
    table |= settings.pop("audit_log", {})
    chosen = load(None, {"audit": "on", **settings, "audit_log": table}, environment={})
    log = await opening.opened(chosen, border or OpenBorder(), folder, {})
    try:
        yield log
    finally:
        await log.close()


def sent(call: int = 1, who: Principal = ANNA, **arguments: Any) -> CallSent:
    return CallSent(call, who, "key", 1, "code", "tool", "shop.refund", arguments)


def ended(call: int = 1, outcome: Any = "ok", *, was_sent: bool = True, **more: Any) -> CallEnded:
    given = more.pop("arguments", {})
    return CallEnded(
        call, ANNA, "key", 1, "code", "tool", "shop.refund", outcome, "", was_sent, given, b"",
        None, b"", 0.01,
    )  # fmt: skip


async def write_calls(folder: Path, count: int = 5, **settings: Any) -> None:
    """Write a log of some calls, and close it."""
    async with writing(folder, **settings) as log:
        for call in range(1, count + 1):
            await log.intend(sent(call, order=call))
            log.note(ended(call))


def records(folder: Path) -> list[dict[str, Any]]:
    return list(reading.records(folder / "log"))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "log").glob("*.jsonl"))


def verified(folder: Path) -> verifying.Verified:
    """What is found of the one chain that there is."""
    public = load_key(None, folder, {}, None).public
    [found] = verifying.verify(folder / "log", folder / "heads", public)
    return found


def rewrite(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines of a file."""
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def chained_again(lines: list[bytes], change: Callable[[dict[str, Any]], None]) -> list[bytes]:
    """What an attacker does who knows how it is made: change records, and compute all hashes."""
    from divingbell.audit.chain import Link, line_of

    end, made = Link(), []
    for line in lines:
        record = json.loads(line)
        for name in ("number", "previous", "hash"):
            del record[name]
        change(record)
        new, end = line_of(record, end)
        made.append(new)
    return made
