"""The interface of a session, for everyone who runs code in one, wherever it lives.

Nothing here passes a descriptor or a path of the host, so a session may live in another process.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.gateway.context import Asker
from divingbell.gateway.functions.function import Tools
from divingbell.models import (
    Completion,
    Consumption,
    DataFormat,
    Event,
    FileInfo,
    FrameLibrary,
    Isolation,
    Limits,
    Result,
    Variable,
)
from divingbell.principal import Principal
from divingbell.session.source import Source


class OpenFileHandle(ABC):
    """A file that is being read: iterate over it for its content, in pieces.

    It ends with the last piece, with `aclose()`, or with the block of an `async with`.
    """

    @property
    @abstractmethod
    def info(self) -> FileInfo:
        """The file as it was when it was opened: its path, its size, when it was modified."""

    @abstractmethod
    def __aiter__(self) -> Self:
        """Itself: it can be iterated over once."""

    @abstractmethod
    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises:
            FileRefused: code has cut the file short meanwhile, or the session has ended.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Stop reading. May be called again."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class FilesHandle(ABC):
    """The files below /workspace.

    A path is a text or a `PurePosixPath`, with or without that prefix. All of these raise
    SessionClosed where the session has ended, and InvalidInput for an argument of a wrong kind.
    """

    @abstractmethod
    async def put(self, path: str | PurePosixPath, data: Source) -> int:
        """Store a file, making folders as needed; return its size.

        `data` is text, bytes, a pathlib.Path of the host, an open file, or an iterator of bytes,
        plain or asynchronous; the last four are streamed. Text is written as UTF-8. The file
        appears under its name only when it is complete.

        Raises:
            DiskFull: the session's disk has no room for it; what there was of it is gone again.
            FileRefused: the path is not below the workspace, or leads to a folder.
            OSError: a file of the host can't be read. What the source raises is passed on.
        """

    @abstractmethod
    async def get(self, path: str | PurePosixPath, *, most: int | None = None) -> bytes:
        """Return the content of a file of at most `most` bytes (the disk limit by default).

        Raises:
            FileMissing: there is no such file.
            FileTooLarge: it has more bytes than that.
            FileRefused: it is no regular file, or the path leads elsewhere.
        """

    @abstractmethod
    def stream(
        self, path: str | PurePosixPath, *, most: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file in pieces. Raises what `get` does, with the first piece."""

    @abstractmethod
    async def open(self, path: str | PurePosixPath, *, most: int | None = None) -> OpenFileHandle:
        """Open a file and return it, to be read in pieces. Raises what `get` does, at once."""

    @abstractmethod
    async def stat(self, path: str | PurePosixPath) -> FileInfo:
        """Return what there is under a path: its kind, its size, when it was modified.

        A link is a link: it is not followed.

        Raises:
            FileMissing: there is nothing.
            FileRefused: the path leads elsewhere.
        """

    @abstractmethod
    async def list(self, path: str | PurePosixPath = "") -> list[FileInfo]:
        """Return the regular files below a folder, sorted by path. Links are left out.

        Raises:
            FileMissing: there is no such folder.
            FileRefused: there are more than 10,000, or the path leads elsewhere.
        """

    @abstractmethod
    async def remove(self, path: str | PurePosixPath) -> None:
        """Remove a file, or a link.

        Raises:
            FileMissing: there is no such file.
            FileRefused: it is a folder, or the path leads elsewhere.
        """


class CommandHandle(ABC):
    """A command that runs, or has run."""

    number: int
    """Commands of a session are counted from 1."""
    command: str
    """The command as it was asked for; words are quoted as for a shell."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Its process, as those inside know it; None where it could not be started."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether it has not ended yet."""

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """As in its result; None while it runs."""

    @property
    @abstractmethod
    def stdout(self) -> str:
        """The text that it has written so far: its start and end, within the limit `output`."""

    @property
    @abstractmethod
    def stderr(self) -> str:
        """The same of stderr."""

    @abstractmethod
    async def wait(self) -> CommandResult:
        """Wait for its end and return its result. Who gives up leaves the command as it is."""

    @abstractmethod
    def stream(self) -> AsyncGenerator[CommandEvent, None]:
        """Yield what it has written so far, then what it writes; the last event is `done`.

        What it has written so far is what `stdout` and `stderr` have. For a reader who is slow
        256 KB of each stream wait; a `notice` says how much was left out after that. Leaving the
        loop leaves the command as it is.
        """

    @abstractmethod
    async def kill(self) -> CommandResult:
        """End it, with all that it has started; return its result, which is `cancelled`.

        It is asked to end (SIGTERM), and after `interrupt_grace` seconds it is ended (SIGKILL).
        One that has ended already keeps its result.
        """


class SessionHandle(ABC):
    """A session: cells run in it one after another, in the order in which they were asked for."""

    id: str
    """As its owner knows it."""
    limits: Limits
    files: FilesHandle

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of cells that have been run."""

    @property
    @abstractmethod
    def principal(self) -> Principal:
        """The principal on whose behalf it runs."""

    @property
    def user(self) -> str | None:
        """The user whose session it is; None where nobody was named."""
        return self.principal.user or None

    @property
    @abstractmethod
    def key(self) -> str:
        """A name that no other session has: of no other user, and no later one of its id."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that it was opened with. They can't be changed."""
        return {}

    @property
    @abstractmethod
    def isolation(self) -> Isolation:
        """The walls and limits that are in force around this session."""

    @property
    @abstractmethod
    def opened_at(self) -> float:
        """The time when it was opened, in seconds since 1970."""

    @property
    @abstractmethod
    def expires_at(self) -> float | None:
        """The time when it ends if nobody uses it meanwhile; None for never."""

    @abstractmethod
    def consumption(self) -> Consumption:
        """Return the time and memory that its processes have used so far."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a cell runs, or something else that others wait for."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether it has ended."""

    @abstractmethod
    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> Result:
        """Run a cell and return its result.

        Whatever the code does is told by the result. Cancelling this call interrupts the cell.
        `argv` is `sys.argv` from now on; where its first is a file inside, that is `__file__`.
        `asker` reaches the person who may be asked about calls of tools. `tools` are functions of
        this program that code of this session can call from now on, and that of no other.

        Raises:
            SessionClosed: the session has ended.
            InvalidInput: the code is no text or too long, a context value can't be passed exactly
                as it is, or a function can't be a tool.
            ConfigError: functions were given, and a server is called `host`.
            RateExceeded: its user has used up a rate of the policy; nothing was run.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
            NotRecorded: it could not be written down that the code runs, so it was not run.
        """

    @abstractmethod
    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> AsyncGenerator[Event, None]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Takes and raises what `run` does.
        """

    @overload
    async def command(
        self,
        command: CommandLine,
        *,
        background: Literal[False] = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult: ...

    @overload
    async def command(
        self,
        command: CommandLine,
        *,
        background: Literal[True],
        **options: Unpack[CommandOptions],
    ) -> CommandHandle: ...

    @abstractmethod
    async def command(
        self, command: CommandLine, *, background: bool = False, **options: Unpack[CommandOptions]
    ) -> CommandResult | CommandHandle:
        """Run a command inside, beside the cells, and return its result.

        A text is run by the shell, a list of words without one. Options are `cwd`, `env`,
        `timeout` and `input`. Cancelling this call ends the command. With `background` it returns
        as soon as the command runs, with a handle to it; it then has no limit on its time unless
        `timeout` is given, and ends with the session at the latest.

        Raises:
            InvalidInput: the command or an option can't be given to a session.
            CapacityError: the session runs as many commands as it may.
            RateExceeded: its user has used up a rate of the policy; nothing was run.
            SessionClosed: the session has ended.
            SandboxUnavailable: the sandbox is gone and a new one can't be made.
            NotRecorded: it could not be written down that the command runs, so it was not run.
        """

    @abstractmethod
    def command_stream(
        self, command: CommandLine, **options: Unpack[CommandOptions]
    ) -> AsyncGenerator[CommandEvent, None]:
        """Run a command and yield what it writes as it comes; the last event is `done` with the
        result.

        Leaving the loop early ends the command. Takes and raises what `command` does.
        """

    @abstractmethod
    def commands(self) -> list[CommandHandle]:
        """Return the commands that run now, in the order in which they were started."""

    @abstractmethod
    async def interrupt(self) -> bool:
        """Stop the cell that is running; its result has the status `cancelled`.

        Returns:
            Whether one was running.
        """

    @abstractmethod
    async def reset(self) -> None:
        """Forget every variable. Files in the workspace stay."""

    @abstractmethod
    async def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them.

        Raises:
            DivingbellError: looking at one of them did not end; the interpreter was replaced.
        """

    @abstractmethod
    async def set(self, name: str, value: Any, *, format: DataFormat | None = None) -> None:
        """Make a variable of a value: plain data, a numpy array, a DataFrame or a Series.

        Frames are those of pandas and polars; one of polars becomes one of pandas where the session
        has no polars. With a `format` the value is the content of such a file (bytes, or a
        pathlib.Path of the host), and the variable is a DataFrame of pandas. Waits in the same
        queue as `run`.

        Raises:
            InvalidInput: the name can't be one of a variable, the value can't be passed, or it does
                not fit the session's disk or memory; nothing was changed.
            DiskFull: code has filled the session's disk meanwhile.
            DivingbellError: the interpreter did not answer, and was replaced.
            SessionClosed: the session has ended.
        """

    @abstractmethod
    async def get(
        self,
        name: str,
        *,
        format: DataFormat | None = None,
        frame: FrameLibrary | None = None,
        most: int | None = None,
    ) -> Any:
        """Return the value of a variable: plain data, a numpy array, a DataFrame or a Series.

        Frames are of the library `frame`; by default of pandas where that is installed here, else
        of polars. With a `format` it is a table as the bytes of such a file, which nobody has
        checked. `most` is the size of what is passed, in bytes (the disk limit by default).

        Raises:
            InvalidInput: there is no such variable, it is neither of these, it is larger, or does
                not fit the session's disk on its way.
            FileRefused: code has removed the file that it was on its way.
            DivingbellError: the interpreter did not answer, and was replaced.
            SessionClosed: the session has ended.
        """

    @abstractmethod
    async def complete(self, code: str, position: int) -> list[Completion]:
        """Say how the code could go on at that position: names, attributes, files.

        Raises:
            InvalidInput: the code is no text or too long.
            DivingbellError: looking at what is there did not end; the interpreter was replaced.
        """

    @abstractmethod
    async def reveal(self, text: str) -> str:
        """Return a text with the values that tokens stand for, such as `[EMAIL_482715]`, for a
        person: an answer of a model, or a file that it wrote. A token that is none of this
        conversation stays as it is, and the log names it. The journal is told first.

        Raises:
            InvalidInput: it is no text.
            SessionClosed: the session has ended.
            UnknownToken: tokens can't be looked up now, because the vault does not answer.
            NotRecorded: there is an audit log, and it can't be written: no value is returned.
        """

    @abstractmethod
    async def close(self, reason: str = "it was closed") -> None:
        """End every process of the session and remove its workspace. May be called again."""
