"""`divingbell shell`: a prompt in a session."""

import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, SessionClosed
from divingbell.escapes import one_line
from divingbell.host.login import login_name
from divingbell.models import Variable
from divingbell.session.base import SessionHandle
from divingbell.session.needs import Needs
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import SandboxOptions, size
from divingbell.surfaces.cli.running import get_file, opened, put_file, put_files
from divingbell.surfaces.cli.terminal.printing import Printer, in_force, limits_in_force
from divingbell.surfaces.cli.terminal.prompt import (
    LEAVING,
    STDIN,
    Input,
    Pipe,
    Terminal,
    history_file,
    is_dot_command,
)
from divingbell.surfaces.cli.terminal.signals import Signals
from divingbell.surfaces.cli.terminal.writer import STDOUT, Writer

HELP = """\
.vars         what variables there are
.files        what is in /workspace
.put FILE     copy a file of this machine to /workspace
.get NAME     copy a file of /workspace to the current folder
.reset        forget all variables; files stay
.help         this
.quit         leave (also exit, quit, Ctrl-D)
Tab completes names, attributes and files. Ctrl-C interrupts what runs and keeps the variables.
`!ls` and `%timeit f()` work, too."""


async def converse(options: SandboxOptions, settings: Settings, signals: Signals) -> int:
    """Read, run and print until the input ends; return the exit status."""
    writer = Writer(lambda: signals.leave(exit_status.BROKEN_PIPE))
    printer = Printer(writer, options.plots)
    try:
        # At a prompt nothing is imported beforehand: it is there at once, as Python's own.
        needs = Needs(servers=tuple(server.name for server in settings.servers))
        async with opened(settings, needs) as bell, Shell(bell, options, printer, signals) as shell:
            printer.note(
                f"{in_force(shell.session.isolation)}; {limits_in_force(shell.session.limits)}"
            )
            by_hand = os.isatty(STDIN) and os.isatty(STDOUT)
            if by_hand:
                printer.note(".help for help, Ctrl-D to leave")
            source = _terminal(shell) if by_hand else Pipe()
            while await _turn(shell, source, writer, signals):
                pass
            return exit_status.OK
    finally:
        if writer.failure is not None:
            raise writer.failure from None


def _terminal(shell: "Shell") -> Input:
    from divingbell.surfaces.cli.terminal.completing import ShellCompleter

    return Terminal(history_file(), ShellCompleter(lambda: shell.session, shell.commands))


async def _turn(shell: "Shell", source: Input, writer: Writer, signals: Signals) -> bool:
    """Read one piece and do it; return whether to go on."""
    await writer.drain()
    try:
        text = await source.read()
    except EOFError:
        return False
    except KeyboardInterrupt:
        return True
    finally:
        signals.listen()  # the prompt had Ctrl-C for itself
    return await shell.take(text)


class Shell:
    """One session after the other, should the first one end, and what can be done with it."""

    def __init__(
        self, bell: Divingbell, options: SandboxOptions, printer: Printer, signals: Signals
    ) -> None:
        self._bell = bell
        self._options = options
        self._printer = printer
        self._signals = signals
        self._stack = contextlib.AsyncExitStack()
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            ".help": self._help,
            ".reset": self._reset,
            ".vars": self._variables,
            ".files": self._files,
            ".put": self._put,
            ".get": self._get,
        }
        self.session: SessionHandle

    async def __aenter__(self) -> "Shell":
        # Someone who is impatient and presses Ctrl-C twice still wants their variables.
        self._signals.leave_on_second = False
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._signals.session = None
        await self._stack.aclose()

    @property
    def commands(self) -> list[str]:
        """Return the names of the dot-commands."""
        return [*self._commands, ".quit"]

    async def take(self, text: str) -> bool:
        """Run code or a dot-command; return False for `.quit`."""
        if text.strip() in LEAVING:
            return False
        try:
            if is_dot_command(text):
                return await self._command(text)
            if text.strip():
                await self._run(text)
        except SessionClosed as error:
            self._printer.note(f"{error}; this is a new one, without its variables and files")
            await self._open()
        except DivingbellError as error:
            self._printer.note(str(error))
        return True

    async def _open(self) -> None:
        await self._stack.aclose()
        self.session = await self._stack.enter_async_context(self._bell.session(user=login_name()))
        self._signals.session = self.session
        await put_files(self.session, self._options)

    async def _run(self, code: str) -> None:
        async for event in self.session.stream(code):
            self._printer.show(event)

    async def _command(self, text: str) -> bool:
        name, _, argument = text.strip().partition(" ")
        if name in (".quit", ".exit"):
            return False
        command = self._commands.get(name)
        if command is None:
            self._printer.note(f"there is no {name}; .help lists what there is")
        else:
            await command(argument.strip())
        return True

    async def _help(self, _: str) -> None:
        self._printer.line(HELP)

    async def _reset(self, _: str) -> None:
        await self.session.reset()
        self._printer.note("all variables are gone, files are still there")

    async def _variables(self, _: str) -> None:
        for variable in await self.session.variables():
            self._printer.line(_describe(variable))

    async def _files(self, _: str) -> None:
        for file in await self.session.files.list():
            self._printer.line(f"{size(file.size):>8}  {one_line(file.path)}")

    async def _put(self, argument: str) -> None:
        if not argument:
            self._printer.note("name a file: .put FILE")
            return
        path = _path(argument)
        stored = await put_file(self.session, path)
        self._printer.note(f"/workspace/{path.name} has {size(stored)}")

    async def _get(self, argument: str) -> None:
        if not argument:
            self._printer.note("name a file: .get NAME")
            return
        self._printer.note(f"copied {await get_file(self.session, argument)}")


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _describe(variable: Variable) -> str:
    if variable.shape is not None:
        detail = " × ".join(map(str, variable.shape))
    elif variable.preview is not None:
        detail = variable.preview
    else:
        detail = "" if variable.length is None else f"{variable.length} items"
    return one_line(f"{variable.name}  {variable.type}  {detail}".rstrip())
