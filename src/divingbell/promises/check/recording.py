"""The audit log: what is not recorded is not done, and what is recorded gives nobody away."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from divingbell.audit import opening, reading, verifying
from divingbell.audit.log import AuditLog
from divingbell.audit.signing import load_key
from divingbell.border.border import OpenBorder
from divingbell.errors import NotRecorded
from divingbell.journal.events import CallSent, Intent, JournalEvent
from divingbell.journal.journal import Kept
from divingbell.promises.check.rig import expect
from divingbell.promises.check.tool_rig import NAME, ToolRig, tool_checks
from divingbell.settings.audit import AuditLogSettings

_PATIENCE = 20.0
_CALL = f"servers.{NAME}.count('recorded')"
_REFUSED = f"""
try:
    {_CALL}
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"
else:
    said = "it was called"
said
"""
_MAIL, _CARD = "anna.lindqvist@example.org", "4111 1111 1111 1111"
_FORGED = '"}\\n{"number":1,"kind":"log.closed"}\\n'
"""What would be two lines more, if it were written as it is."""
_PERSONAL = f"""
for words in ({_MAIL!r}, {_CARD!r}, "x" * 3990 + {_MAIL!r}, {_FORGED!r} + {_MAIL!r}, chr(0xD800)):
    for tool, given in ((servers.{NAME}.count, [words]), (servers.{NAME}.send, ["nobody", words])):
        try:
            tool(*given)
        except Exception:
            pass
"""


@contextlib.asynccontextmanager
async def _logging(rig: ToolRig, folder: Path) -> AsyncIterator[AuditLog]:
    """An audit log in a folder, which keeps what the rig does."""
    chosen = AuditLogSettings(folder=str(folder / "log"), heads=str(folder / "heads"))
    settings = replace(rig.bell.settings, audit="on", audit_log=chosen)
    log = await opening.opened(settings, OpenBorder(), folder, {})
    undo = rig.bell.journal.keep(log)
    try:
        yield log
    finally:
        undo()
        await log.close()


class _Holding:
    """A durable subscriber that never has a call in writing."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()

    async def intend(self, event: Intent) -> None:
        kept = await self.begin(event)
        if kept is not None:
            await kept()

    async def begin(self, event: Intent) -> Kept | None:
        return self._never if isinstance(event, CallSent) else None

    async def _never(self) -> None:
        self.is_asked.set()
        await asyncio.sleep(_PATIENCE / 10)
        raise NotRecorded("the disk does not answer")

    def note(self, event: JournalEvent) -> None: ...


@tool_checks("L01", alone=True)
async def calls_that_are_not_recorded(rig: ToolRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        folder = Path(name)
        (folder / "log").write_text("where a folder should be")
        async with rig.session() as session:
            before = await rig.counted(session, "recorded")
            async with _logging(rig, folder):
                words = await rig.value(session, _REFUSED)
                (folder / "log").unlink()
                made = await rig.value(session, _REFUSED)
            holding = _Holding()
            undo = rig.bell.journal.keep(holding)
            try:
                held = await rig.value(session, _REFUSED)
            finally:
                undo()
            after = await rig.counted(session, "recorded")
        recorded = [each for each in reading.records(folder / "log") if "call.st" in each["kind"]]
    expect("no call was made" in words, f"with a log that can't be written: {words}")
    expect(made == "it was called", f"with a log that can be written again: {made}")
    expect(holding.is_asked.is_set(), "a call was not held until it was recorded")
    expect("no call was made" in held, f"while nothing is written: {held}")
    expect(after == before + 1, f"the server was called {after - before} times, and not once")
    expect(len(recorded) == 1, f"{len(recorded)} calls were recorded, and not one")
    return "of three calls one could be recorded, and that one came to the server"


@tool_checks("L02", alone=True)
async def values_in_the_audit_log(rig: ToolRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        folder = Path(name)
        async with rig.session() as session, _logging(rig, folder):
            await rig.value(session, _PERSONAL)
        [path] = (folder / "log").glob("*.jsonl")
        written = path.read_bytes()
        public = load_key(None, folder, {}, None).public
        [found] = verifying.verify(folder / "log", folder / "heads", public)
        records = list(reading.records(folder / "log"))
    for value in (_MAIL, _CARD):
        expect(value.encode() not in written, f"{value} is in the log")
    expect(written.count(b"[EMAIL]") >= 2, "the calls are not in the log")
    expect(all(json.loads(line) for line in written.splitlines()), "a line is no record")
    closed = [each for each in records if each["kind"] == "log.closed"]
    expect(len(closed) == 1, "arguments were taken for records")
    denied = [each for each in records if each.get("outcome") == "denied"]
    expect(len(denied) >= 4, f"{len(denied)} refused calls are in the log, and not all")
    expect(found.verdict == "whole" and found.closed, f"it is {found.verdict}: {found.why}")
    return f"{found.records} records, whole, and no value in {len(written):,} bytes"
