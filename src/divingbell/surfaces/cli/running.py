"""`divingbell run` and `divingbell exec`: one cell in a fresh session."""

import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, FileRefused, InvalidInput
from divingbell.host.login import login_name
from divingbell.models import Result
from divingbell.session.base import SessionHandle
from divingbell.session.inputs import MAX_CODE
from divingbell.session.needs import Needs
from divingbell.settings.config import Settings
from divingbell.settings.servers import Server
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.approving import TerminalApprover
from divingbell.surfaces.cli.options import RunOptions, SandboxOptions
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.surfaces.cli.terminal.printing import Printer
from divingbell.surfaces.cli.terminal.signals import Signals
from divingbell.surfaces.cli.terminal.writer import STDOUT, Writer
from divingbell_inside import layout

STDIN = "-"
WHOLE_OUTPUT = f"{layout.OUTPUTS.removeprefix(layout.WORKSPACE + '/')}/cell-1.txt"
"""All text of the one cell, where some was left out; it goes when the session does."""

_MISSING = re.compile(r"\[Errno 2\] No such file or directory: '(\w[\w. -]{0,199})'")
"""Python's words for a file that is not there, with a plain name: nothing of a path."""


@dataclass(frozen=True)
class Script:
    """Code that is to be run once, and what `sys.argv` is for it."""

    code: str
    argv: tuple[str, ...]
    path: Path | None = None
    """The file that it is from, which is laid into the workspace."""


def read_script(name: str, arguments: Sequence[str]) -> Script:
    """Return the script in a file, or on stdin for `-`, as Python would start it.

    Raises:
        InvalidInput: it can't be read, or is not UTF-8.
    """
    code, path = _read_code(name), Path(name)
    if name == STDIN or not path.is_file():  # a device has a name that says nothing
        return Script(code, (name, *arguments))
    return Script(code, (f"{layout.WORKSPACE}/{path.name}", *arguments), path)


def _read_code(name: str) -> str:
    try:
        # No more than that: it may be a device that never ends.
        if name == STDIN:
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
async def opened(settings: Settings, needs: Needs | None = None) -> AsyncIterator[Divingbell]:
    """Open a Divingbell with these settings, and tell of its preparations on stderr."""
    # All that are at hand, also those that are only connected to when code asks for them.
    if names := [one.name for one in settings.servers if isinstance(one, Server) and one.enabled]:
        tell(f"servers: {', '.join(names)}")
    async with Divingbell.of(
        settings, progress=tell, on_approval=TerminalApprover(), needs=needs
    ) as bell:
        yield bell


async def put_files(session: SessionHandle, options: SandboxOptions) -> None:
    """Copy what `--put` names."""
    for path in options.put:
        await put_file(session, path)


async def put_file(session: SessionHandle, path: Path) -> int:
    """Copy a file of this machine to the workspace; return its size.

    Raises:
        FileRefused: it can't be read, or not be stored.
    """
    try:
        with path.open("rb") as file:
            return await session.files.put(path.name, file)
    except OSError as error:
        raise FileRefused(f"{path} can't be copied: {error.strerror}") from None


async def get_file(session: SessionHandle, name: str) -> Path:
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
    return target


async def run_once(
    script: Script, options: RunOptions, settings: Settings, signals: Signals
) -> int:
    """Run the code in a session of its own, show what it does, return the exit status."""
    writer = Writer(lambda: signals.leave(exit_status.BROKEN_PIPE))
    printer = Printer(writer, options.plots)
    needs = Needs.of(script.code, settings.preload, settings.servers)
    try:
        async with opened(settings, needs) as bell, bell.session(user=login_name()) as session:
            await put_files(session, options)
            if script.path is not None:
                await put_file(session, script.path)
            signals.session = session
            result = await _stream(session, script, None if options.json else printer)
            signals.session = None
            status = exit_status.of_result(result)
            if result.limit == "output" and WHOLE_OUTPUT not in options.get:
                printer.note(f"with --get {WHOLE_OUTPUT} the next run copies all of it here")
            if (missing := _file_of_here(result)) is not None:
                option = f"--put {shlex.quote(missing)}"
                printer.note(f"{missing} is a file of this machine: copy it in with {option}")
            if options.json:
                writer.write(STDOUT, result.to_json() + "\n")
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


async def _stream(session: SessionHandle, script: Script, printer: Printer | None) -> Result:
    result = None
    async for event in session.stream(script.code, argv=script.argv):
        if printer is not None:
            printer.show(event)
        result = event.result
    assert result is not None  # the last event of a stream has it
    return result


def _file_of_here(result: Result) -> str | None:
    """Return the file that the code did not find, if the current folder has one of that name."""
    error = result.error
    if error is None or error.type != "FileNotFoundError":
        return None
    found = _MISSING.fullmatch(error.message)
    return found[1] if found is not None and os.path.isfile(found[1]) else None
