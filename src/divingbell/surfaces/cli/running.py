"""`divingbell run` and `divingbell exec`: one cell in a fresh session."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.config import Settings
from divingbell.errors import DivingbellError, FileRefused, InvalidInput
from divingbell.gateway.servers import Server
from divingbell.models import Result
from divingbell.session import MAX_CODE, Session
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.approving import TerminalApprover
from divingbell.surfaces.cli.options import RunOptions, SandboxOptions
from divingbell.surfaces.cli.printing import NOTE, Printer, as_json
from divingbell.surfaces.cli.signals import Signals
from divingbell.surfaces.cli.writer import STDOUT, Writer


def read_code(name: str | None) -> str:
    """Return the code in a file, or on stdin where there is no name.

    Raises:
        InvalidInput: it can't be read, or is not UTF-8.
    """
    try:
        # No more than that: it may be a device that never ends.
        if name is None:
            name = "stdin"
            raw = sys.stdin.buffer.read(MAX_CODE + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(MAX_CODE + 1)
    except OSError as error:
        raise InvalidInput(f"{name} can't be read: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{name} is not UTF-8: byte 0x{raw[error.start]:02x} in line {line}; "
            "save it as UTF-8 and try again"
        ) from None


@contextlib.asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Divingbell]:
    """A Divingbell with these settings, whose preparations are told on stderr."""
    if names := [one.name for one in settings.servers if isinstance(one, Server) and one.enabled]:
        _tell(f"servers: {', '.join(names)}")
    async with Divingbell.of(settings, progress=_tell, on_approval=TerminalApprover()) as bell:
        yield bell


def _tell(line: str) -> None:
    print(NOTE + line, file=sys.stderr, flush=True)


async def put_files(session: Session, options: SandboxOptions) -> None:
    """Copy what `--put` names."""
    for path in options.put:
        await put_file(session, path)


async def put_file(session: Session, path: Path) -> int:
    """Copy a file of this machine to the workspace; return its size.

    Raises:
        FileRefused: it can't be read, or not be stored.
    """
    try:
        with path.open("rb") as file:
            return await session.files.put(path.name, file)
    except OSError as error:
        raise FileRefused(f"{path} can't be copied: {error.strerror}") from None


async def get_file(session: Session, name: str) -> Path:
    """Copy a file of the workspace to the current folder; return its path here.

    Raises:
        FileRefused: there is no such file, or it can't be written here.
    """
    target = Path(Path(name).name)
    try:
        async with contextlib.aclosing(session.files.stream(name)) as pieces:
            # Under its own name only when it is complete, and never through a link.
            with tempfile.NamedTemporaryFile(dir=".", prefix=".divingbell-", delete=False) as file:
                try:
                    async for piece in pieces:
                        file.write(piece)
                    os.fchmod(file.fileno(), 0o644)
                    os.replace(file.name, target)
                except BaseException:
                    os.unlink(file.name)
                    raise
    except OSError as error:
        raise FileRefused(f"{target} can't be written: {error.strerror}") from None
    except FileRefused as error:
        raise FileRefused(f"{name} can't be copied: {error}") from None
    return target


async def run_once(code: str, options: RunOptions, settings: Settings, signals: Signals) -> int:
    """Run the code in a session of its own, show what it does, return the exit status."""
    writer = Writer(lambda: signals.leave(exit_status.BROKEN_PIPE))
    printer = Printer(writer, options.plots)
    try:
        async with opened(settings) as bell, bell.session() as session:
            await put_files(session, options)
            signals.session = session
            result = await _stream(session, code, None if options.json else printer)
            signals.session = None
            status = exit_status.of_result(result)
            if options.json:
                writer.write(STDOUT, json.dumps(as_json(result)) + "\n")
            for name in options.get:
                try:
                    printer.note(f"copied {await get_file(session, name)}")
                except DivingbellError as error:
                    printer.note(str(error))
                    status = status or exit_status.FAILED
            await writer.drain()
            return status
    finally:
        if writer.failure is not None:
            raise writer.failure from None


async def _stream(session: Session, code: str, printer: Printer | None) -> Result:
    result = None
    async for event in session.stream(code):
        if printer is not None:
            printer.show(event)
        result = event.result
    assert result is not None  # the last event of a stream has it
    return result
