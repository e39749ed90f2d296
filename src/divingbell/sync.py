"""The library without `await`: made by scripts/make_sync.py, so don't change it here.

The names are those of `divingbell`. Everything runs on an event loop in a thread of its own, which
any thread may call. Ctrl-C interrupts the cell that is waited for.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self, Unpack, overload

from divingbell.app import Divingbell as _Divingbell
from divingbell.app import Function
from divingbell.border.border import Border
from divingbell.command import CommandEvent, CommandLine, CommandOptions, CommandResult
from divingbell.gateway.context import Asker
from divingbell.gateway.functions.function import Tools
from divingbell.gateway.gateway import Gateway as _Gateway
from divingbell.gateway.upstream.fleet import ServerState
from divingbell.journal.journal import Watcher
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
    SessionLimits,
    Variable,
)
from divingbell.portal import Face, Iterated, PlainApprover, Running, awaited
from divingbell.principal import Principal
from divingbell.review.finding import Review
from divingbell.session.calls import ToolGateway
from divingbell.session.commands.handle import StartedHandle as _StartedHandle
from divingbell.session.files import Files as _Files
from divingbell.session.files import OpenFile as _OpenFile
from divingbell.session.needs import Needs
from divingbell.session.session import Session as _Session
from divingbell.session.source import Source
from divingbell.settings.arguments import SettingsArguments
from divingbell.settings.config import Settings
from divingbell.settings.servers import Entry
from divingbell.skills.installing import Proposal
from divingbell.skills.publishing import Published
from divingbell.skills.record import Kept, Summary
from divingbell.skills.skill import Skill
from divingbell.skills.skills import Skills as _Skills
from divingbell.skills.skills import log
from divingbell.tool import Tool


class OpenFile(Iterated[_OpenFile]):
    """A file that is being read: iterate over it for its content, in pieces."""

    @property
    def info(self) -> FileInfo:
        """The file as it was when it was opened: its path, its size, when it was modified."""
        found: FileInfo = self._face(self._of.info)
        return found


class Files(Face[_Files]):
    """The files of a session."""

    def put(self, path: str | PurePosixPath, data: Source) -> int:
        """Store a file, making folders as needed; return its size.

        `data` is text, bytes, a pathlib.Path of the host, an open file, or an iterator of bytes,
        plain or asynchronous; the last four are streamed. Text is written as UTF-8. The file
        appears under its name only when it is complete.

        Raises:
            DiskFull: the session's disk has no room for it; what there was of it is gone again.
            FileRefused: the path is not below the workspace, or leads to a folder.
            OSError: a file of the host can't be read. What the source raises is passed on.
        """
        found: int = self._call(self._of.put, path, data)
        return found

    def get(self, path: str | PurePosixPath, *, most: int | None = None) -> bytes:
        """Return the content of a file of at most `most` bytes (the disk limit by default).

        Raises:
            FileMissing: there is no such file.
            FileTooLarge: it has more bytes than that.
            FileRefused: it is no regular file, or the path leads elsewhere.
        """
        found: bytes = self._call(self._of.get, path, most=most)
        return found

    def stream(
        self, path: str | PurePosixPath, *, most: int | None = None
    ) -> Generator[bytes, None, None]:
        """Yield the content of a file in pieces. Raises what `get` does, with the first piece."""
        return self._portal.items(self._of.stream(path, most=most))

    def open(self, path: str | PurePosixPath, *, most: int | None = None) -> OpenFile:
        """Open a file and return it, to be read in pieces. Raises what `get` does, at once."""
        found: OpenFile = self._call(self._of.open, path, most=most)
        return found

    def stat(self, path: str | PurePosixPath) -> FileInfo:
        """Return what there is under a path: its kind, its size, when it was modified.

        A link is a link: it is not followed.

        Raises:
            FileMissing: there is nothing.
            FileRefused: the path leads elsewhere.
        """
        found: FileInfo = self._call(self._of.stat, path)
        return found

    def list(self, path: str | PurePosixPath = "") -> list[FileInfo]:
        """Return the regular files below a folder, sorted by path. Links are left out.

        Raises:
            FileMissing: there is no such folder.
            FileRefused: there are more than 10,000, or the path leads elsewhere.
        """
        found: list[FileInfo] = self._call(self._of.list, path)
        return found

    def remove(self, path: str | PurePosixPath) -> None:
        """Remove a file, or a link.

        Raises:
            FileMissing: there is no such file.
            FileRefused: it is a folder, or the path leads elsewhere.
        """
        self._call(self._of.remove, path)


class CommandHandle(Face[_StartedHandle]):
    """A command that runs, or has run."""

    @property
    def pid(self) -> int | None:
        """Its process, as those inside know it; None where it could not be started."""
        found: int | None = self._face(self._of.pid)
        return found

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        found: bool = self._face(self._of.running)
        return found

    @property
    def exit_code(self) -> int | None:
        """As in its result; None while it runs."""
        found: int | None = self._face(self._of.exit_code)
        return found

    @property
    def stdout(self) -> str:
        """The text that it has written so far: its start and end, within the limit `output`."""
        found: str = self._face(self._of.stdout)
        return found

    @property
    def stderr(self) -> str:
        """The same of stderr."""
        found: str = self._face(self._of.stderr)
        return found

    def wait(self) -> CommandResult:
        """Wait for its end and return its result. Who gives up leaves the command as it is."""
        found: CommandResult = self._call(self._of.wait)
        return found

    def kill(self) -> CommandResult:
        """End it, with all that it has started; return its result, which is `cancelled`.

        It is asked to end (SIGTERM), and after `interrupt_grace` seconds it is ended (SIGKILL).
        One that has ended already keeps its result.
        """
        found: CommandResult = self._call(self._of.kill)
        return found

    def stream(self) -> Generator[CommandEvent, None, None]:
        """Yield what it has written so far, then what it writes; the last event is `done`.

        What it has written so far is what `stdout` and `stderr` have. For a reader who is slow
        256 KB of each stream wait; a `notice` says how much was left out after that. Leaving the
        loop leaves the command as it is.
        """
        return self._portal.items(self._of.stream())

    @property
    def number(self) -> int:
        """Commands of a session are counted from 1."""
        found: int = self._face(self._of.number)
        return found

    @property
    def command(self) -> str:
        """The command as it was asked for; words are quoted as for a shell."""
        found: str = self._face(self._of.command)
        return found


class Session(Face[_Session]):
    """A session."""

    @property
    def files(self) -> Files:
        found: Files = self._face(self._of.files)
        return found

    @property
    def principal(self) -> Principal:
        """The principal on whose behalf it runs."""
        found: Principal = self._face(self._of.principal)
        return found

    @property
    def key(self) -> str:
        """A name that no other session has: of no other user, and no later one of its id."""
        found: str = self._face(self._of.key)
        return found

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that it was opened with. They can't be changed."""
        found: Mapping[str, str] = self._face(self._of.labels)
        return found

    @property
    def isolation(self) -> Isolation:
        """The walls and limits that are in force around this session."""
        found: Isolation = self._face(self._of.isolation)
        return found

    @property
    def opened_at(self) -> float:
        """The time when it was opened, in seconds since 1970."""
        found: float = self._face(self._of.opened_at)
        return found

    @property
    def expires_at(self) -> float | None:
        """The time when it ends if nobody uses it meanwhile; None for never."""
        found: float | None = self._face(self._of.expires_at)
        return found

    def consumption(self) -> Consumption:
        """Return the time and memory that its processes have used so far."""
        found: Consumption = self._call(self._of.consumption)
        return found

    @property
    def cells(self) -> int:
        """The number of cells that have been run."""
        found: int = self._face(self._of.cells)
        return found

    @property
    def busy(self) -> bool:
        """Whether a cell runs, or something else that others wait for."""
        found: bool = self._face(self._of.busy)
        return found

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        found: bool = self._face(self._of.closed)
        return found

    @property
    def alive(self) -> bool:
        """Whether the interpreter lives; if not, the next run puts another in its place."""
        found: bool = self._face(self._of.alive)
        return found

    @property
    def last_used(self) -> float:
        """The time when it was last used, by `time.monotonic()`."""
        found: float = self._face(self._of.last_used)
        return found

    @property
    def copied_cell(self) -> int | None:
        """The cell whose state a copy of the interpreter keeps, where one waits."""
        found: int | None = self._face(self._of.copied_cell)
        return found

    @property
    def copy_refused(self) -> str | None:
        """The reason why the last copy that was asked for was not made."""
        found: str | None = self._face(self._of.copy_refused)
        return found

    def run(
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
        found: Result = self._call(
            self._of.run,
            code,
            timeout=timeout,
            context=context,
            argv=argv,
            asker=asker,
            tools=tools,
        )
        return found

    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        asker: Asker | None = None,
        tools: Tools = (),
    ) -> Generator[Event, None, None]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Takes and raises what `run` does.
        """
        return self._portal.items(
            self._of.stream(
                code, timeout=timeout, context=context, argv=argv, asker=asker, tools=tools
            )
        )

    @overload
    def command(
        self,
        command: CommandLine,
        *,
        background: Literal[False] = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult: ...

    @overload
    def command(
        self, command: CommandLine, *, background: Literal[True], **options: Unpack[CommandOptions]
    ) -> CommandHandle: ...

    def command(
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
        found: CommandResult | CommandHandle = self._call(
            self._of.command, command, background=background, **options
        )
        return found

    def command_stream(
        self, command: CommandLine, **options: Unpack[CommandOptions]
    ) -> Generator[CommandEvent, None, None]:
        """Run a command and yield what it writes as it comes; the last event is `done` with the
        result.

        Leaving the loop early ends the command. Takes and raises what `command` does.
        """
        return self._portal.items(self._of.command_stream(command, **options))

    def commands(self) -> list[CommandHandle]:
        """Return the commands that run now, in the order in which they were started."""
        found: list[CommandHandle] = self._call(self._of.commands)
        return found

    def interrupt(self) -> bool:
        """Stop the cell that is running; its result has the status `cancelled`.

        Returns:
            Whether one was running.
        """
        found: bool = self._call(self._of.interrupt)
        return found

    def reset(self) -> None:
        """Forget every variable. Files in the workspace stay."""
        self._call(self._of.reset)

    def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them.

        Raises:
            DivingbellError: looking at one of them did not end; the interpreter was replaced.
        """
        found: list[Variable] = self._call(self._of.variables)
        return found

    def set(self, name: str, value: Any, *, format: DataFormat | None = None) -> None:
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
        self._call(self._of.set, name, value, format=format)

    def get(
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
        found: Any = self._call(self._of.get, name, format=format, frame=frame, most=most)
        return found

    def complete(self, code: str, position: int) -> list[Completion]:
        """Say how the code could go on at that position: names, attributes, files.

        Raises:
            InvalidInput: the code is no text or too long.
            DivingbellError: looking at what is there did not end; the interpreter was replaced.
        """
        found: list[Completion] = self._call(self._of.complete, code, position)
        return found

    def reveal(self, text: str) -> str:
        """Return a text with the values that tokens stand for, such as `[EMAIL_482715]`, for a
        person: an answer of a model, or a file that it wrote. A token that is none of this
        conversation stays as it is, and the log names it. The journal is told first.

        Raises:
            InvalidInput: it is no text.
            SessionClosed: the session has ended.
            UnknownToken: tokens can't be looked up now, because the vault does not answer.
            NotRecorded: there is an audit log, and it can't be written: no value is returned.
        """
        found: str = self._call(self._of.reveal, text)
        return found

    def touch(self) -> None:
        """Count as used now, so that it does not end by being idle.

        Raises:
            SessionClosed: the session has ended.
        """
        self._call(self._of.touch)

    def close(self, reason: str = "it was closed") -> None:
        """End every process of the session and remove its workspace. May be called again."""
        self._call(self._of.close, reason)

    @property
    def id(self) -> str:
        """As its owner knows it."""
        found: str = self._face(self._of.id)
        return found

    @property
    def limits(self) -> Limits:
        found: Limits = self._face(self._of.limits)
        return found

    @property
    def user(self) -> str | None:
        """The user whose session it is; None where nobody was named."""
        found: str | None = self._face(self._of.user)
        return found


class Gateway(Face[_Gateway]):
    """The MCP servers, and their tools."""

    @overload
    def add(self, entry: Entry) -> None: ...

    @overload
    def add(self, entry: str, table: Mapping[str, Any]) -> None: ...

    def add(self, entry: Entry | str, table: Mapping[str, Any] | None = None) -> None:
        """Add a server: its name and the table that the settings would have for it, or an entry.

        Raises:
            ConfigError: the table can't be used, or there is a server of that name.
        """
        self._call(self._of.add, entry, table)

    def remove(self, name: str) -> None:
        """Take a server away; calls to it that are under way fail.

        Raises:
            ConfigError: it is `host`, whose functions `remove_tool` takes away.
        """
        self._call(self._of.remove, name)

    def servers(self) -> list[ServerState]:
        found: list[ServerState] = self._call(self._of.servers)
        return found

    def search(
        self,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
        user: str = "",
    ) -> list[dict[str, Any]]:
        """Find tools, the best first: see `VisibleTools.search`."""
        found: list[dict[str, Any]] = self._call(
            self._of.search, query, detail_level, limit, server, user
        )
        return found

    def tools(self, server: str | None = None, user: str = "") -> list[Tool]:
        """The tools that this user may see."""
        found: list[Tool] = self._call(self._of.tools, server, user)
        return found


class Skills(Face[_Skills]):
    """The skills that are kept on this machine, each user's by themselves."""

    def test(self, name: str, *, user: str | None = None) -> Result:
        """Run the example of a skill in a fresh session with the real tools; return the result.

        Rules, budgets and approvals hold as for any code. One that went well is offered again.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it has no example, or skills are off.
        """
        found: Result = self._call(self._of.test, name, user=user)
        return found

    def get(self, name: str, version: int | None = None, *, user: str | None = None) -> Kept:
        """Return a version of a skill, with all its files; without a number the one offered.

        Raises:
            SkillMissing: there is none of that name, or no such version.
        """
        found: Kept = self._call(self._of.get, name, version, user=user)
        return found

    def versions(self, name: str, *, user: str | None = None) -> list[Summary]:
        """Return all versions of a skill, the oldest first, as `list` does.

        Raises:
            SkillMissing: there is none of that name.
        """
        found: list[Summary] = self._call(self._of.versions, name, user=user)
        return found

    def search(self, query: str, limit: int = 10, *, user: str | None = None) -> list[Summary]:
        """Return the skills that fit a query best and are offered, the best first."""
        found: list[Summary] = self._call(self._of.search, query, limit, user=user)
        return found

    def add(self, skill: Skill | str | Path, *, user: str | None = None) -> Kept:
        """Keep a skill, or the one in a folder, as a new version, which is offered from now on.

        Its code is not run.

        Raises:
            SkillMissing: there is no such folder, or no SKILL.md in it.
            SkillRefused: it is not in the Agent Skills format, or larger than a skill may be.
        """
        found: Kept = self._call(self._of.add, skill, user=user)
        return found

    def import_folder(
        self,
        folder: str | Path,
        *,
        user: str | None = None,
        skip_bad: bool = False,
        tell: Callable[[str], None] = log.warning,
    ) -> list[Kept]:
        """Take over skills that were made for another agent, as they are: all or none.

        They are those right below the folder, such as `~/.claude/skills`, or that folder itself.
        Their code is not run. With `skip_bad` those that are no skills are left out, and `tell`
        hears why: by default the log does.

        Raises:
            SkillMissing: there is no such folder, or no skill in it.
            SkillRefused: one of them is no skill, or larger than one may be; it says which.
        """
        found: list[Kept] = self._call(
            self._of.import_folder, folder, user=user, skip_bad=skip_bad, tell=tell
        )
        return found

    def export(
        self, name: str, folder: str | Path, version: int | None = None, *, user: str | None = None
    ) -> Path:
        """Write a skill out into a folder that is there, and return its own folder.

        Raises:
            SkillMissing: there is no such skill, version or folder.
            SkillRefused: there is something of that name in the folder already.
        """
        found: Path = self._call(self._of.export, name, folder, version, user=user)
        return found

    def publish(
        self, name: str, to: str, version: int | None = None, *, user: str | None = None
    ) -> Published:
        """Put a skill into a catalogue, signed with the key of this machine's user.

        `to` is a folder, or the address of a git repository. The key is made when there is none.

        Raises:
            SkillMissing: there is no such skill or version.
            SkillRefused: somebody else's skill has that name there, or it can't be written.
            ConfigError: the key can't be used.
        """
        found: Published = self._call(self._of.publish, name, to, version, user=user)
        return found

    def install(
        self, name: str, source: str, *, sha256: str = "", key: str = "", user: str | None = None
    ) -> Kept:
        """Keep a skill of a catalogue, a folder or a git repository. Its code is not run.

        `sha256` is its digest, by which somebody says that they have looked at these very files;
        `key` is the publisher's. Without the digest it is kept only where nobody has to decide:
        the key is known, and the review has no question.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it is not what was signed, seen before or named, or a person must look at
                it first; the message says why, and has the digest.
            ConfigError: what was seen of catalogues can't be read.
        """
        found: Kept = self._call(self._of.install, name, source, sha256=sha256, key=key, user=user)
        return found

    def update(self, name: str = "", *, user: str | None = None) -> list[Kept]:
        """Keep newer versions of skills that came from catalogues, of one or of all; return them.

        Raises:
            SkillMissing: there is no such skill that came from a catalogue.
            SkillRefused: one was refused, as by `install`; those before it are kept.
        """
        found: list[Kept] = self._call(self._of.update, name, user=user)
        return found

    def agree(self, proposal: Proposal, user: str) -> Kept:
        """Keep a skill of a catalogue that somebody has agreed to.

        Raises:
            SkillRefused: the rules of the review forbid it.
            ConfigError: what was seen of catalogues can't be written.
        """
        found: Kept = self._call(self._of.agree, proposal, user)
        return found

    def rollback(self, name: str, version: int | None = None, *, user: str | None = None) -> Kept:
        """Offer an earlier version again; without a number the one before what is offered.

        Raises:
            SkillMissing: there is no such version.
        """
        found: Kept = self._call(self._of.rollback, name, version, user=user)
        return found

    def remove(self, name: str, *, user: str | None = None) -> int:
        """Remove a skill with all its versions, and return how many there were.

        Raises:
            SkillMissing: there is none of that name.
        """
        found: int = self._call(self._of.remove, name, user=user)
        return found

    def list(self, *, user: str | None = None) -> list[Summary]:
        """Return all skills, in the order of their names, with their uses."""
        found: list[Summary] = self._call(self._of.list, user=user)
        return found


class Divingbell(Running[_Divingbell]):
    """A sandbox service for this process: `with Divingbell() as bell: …`"""

    def __init__(
        self,
        backend: str | None = None,
        config: str | Path | None = None,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: PlainApprover | None = None,
        on_event: Watcher | None = None,
        border: Border | None = None,
        tools: Tools = (),
        **settings: Unpack[SettingsArguments],
    ) -> None:
        """Read the settings; nothing is started yet.

        `on_approval` is asked about calls of tools for which the policy says "ask". `on_event` is
        called with every event of the journal, from the start to the end; see `Journal.watch`.
        `border` is passed by everything that goes to a model or comes from one; without one nothing
        is changed. `tools` are functions of this program that code can call: see `tool`.

        Raises:
            ConfigError: they can't be used.
            InvalidInput: a function can't be a tool.
        """
        super().__init__(
            _Divingbell(
                backend,
                config,
                progress=progress,
                on_approval=awaited(on_approval),
                on_event=on_event,
                border=border,
                tools=tools,
                **settings,
            )
        )

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: PlainApprover | None = None,
        on_event: Watcher | None = None,
        needs: Needs | None = None,
        scratch: Path | None = None,
        border: Border | None = None,
        tools: Tools = (),
    ) -> Self:
        """Make one with settings that were read already; neither file nor environment is read.

        `needs` is for a command that runs one piece of code: only what that needs is made ready.
        `scratch` is for one that shall leave no trace: what servers say is logged in that folder,
        and nothing of them is remembered or looked up (pins, lists of tools, sign-ins).

        Raises:
            ConfigError: they name a backend that is not there, or one below the minimum.
            InvalidInput: a function can't be a tool.
        """
        made = cls.__new__(cls)
        Running.__init__(
            made,
            _Divingbell.of(
                settings,
                progress=progress,
                on_approval=awaited(on_approval),
                on_event=on_event,
                needs=needs,
                scratch=scratch,
                border=border,
                tools=tools,
            ),
        )
        return made

    @property
    def is_ready(self) -> bool:
        """Whether the sandbox is up."""
        found: bool = self._face(self._of.is_ready)
        return found

    @contextmanager
    def session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> Iterator[Session]:
        """Open a session, or join the one that this user has open under this id.

        `env` is in `os.environ` of the code, which can read it. `labels` are for whoever looks for
        sessions. `idle_timeout` is in seconds: None for the setting, `math.inf` for never. `limits`
        are timeout, memory and so on, for this session. None of these changes a session that is
        joined. Leaving the block ends the session, unless it is still held by another block.

        Raises:
            InvalidInput: the id, the user, `env`, `labels` or `idle_timeout` can't be used.
            CapacityError: there is no place, and none became free in time.
            SandboxUnavailable: the sandbox could not be made.
            WrongLoop: this Divingbell belongs to another event loop or process.
        """
        with self._entered(
            self._of.session(
                id, user=user, env=env, labels=labels, idle_timeout=idle_timeout, **limits
            )
        ) as held:
            yield held

    def execute(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        tools: Tools = (),
        **limits: Unpack[SessionLimits],
    ) -> Result:
        """Run code once, in a fresh session that ends with it; takes what `session` does.

        `tools` are functions for it alone.
        """
        found: Result = self._call(
            self._of.execute,
            code,
            context=context,
            argv=argv,
            user=user,
            env=env,
            labels=labels,
            tools=tools,
            **limits,
        )
        return found

    def review(self, code: str) -> Review:
        """Return what code would try to do, and what the rules say about it. Nothing is run.

        It goes by the settings of `review`, even where these turn reviews off, and by the limits
        that a session has unless others are named.

        Raises:
            InvalidInput: the code is no text.
            WrongLoop: this Divingbell belongs to another event loop.
        """
        found: Review = self._call(self._of.review, code)
        return found

    def open(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> Session:
        """Open a session as `session` does, for those who can't keep a block; see `release`."""
        found: Session = self._call(
            self._of.open,
            id,
            user=user,
            env=env,
            labels=labels,
            idle_timeout=idle_timeout,
            **limits,
        )
        return found

    def open_behind(self, door: ToolGateway, principal: Principal) -> Session:
        """Open a fresh session whose calls this door alone answers; see `release`.

        Raises: as `session`.
        """
        found: Session = self._call(self._of.open_behind, door, principal)
        return found

    def release(self, session: Session) -> None:
        """Let go of a session that `open` gave; the last holder ends it."""
        self._call(self._of.release, session)

    @overload
    def tool(self, function: Function) -> Function: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        direct: bool = False,
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        direct: bool = False,
    ) -> Function | Callable[[Function], Function]:
        """Make a function a tool of all sessions, as a decorator: `@bell.tool`, now or before.

        Code calls it as `servers.host.NAME`. The options are those of `HostFunction`.

        Returns:
            The function as it is.

        Raises:
            InvalidInput: it can't be a tool, or there is one of that name.
            ConfigError: a server is called `host`.
        """

        def add(given: Function) -> Function:
            self._call(
                self._of.tool(
                    name=name, description=description, read_only=read_only, direct=direct
                ),
                given,
            )
            return given

        return add if function is None else add(function)

    def remove_tool(self, name: str) -> None:
        """Take a function away from all sessions; calls of it that are under way go on.

        Raises:
            InvalidInput: there is none of that name.
        """
        self._call(self._of.remove_tool, name)

    @property
    def gateway(self) -> Gateway:
        """The tools, and the servers that they come from."""
        found: Gateway = self._face(self._of.gateway)
        return found

    @property
    def skills(self) -> Skills:
        """The skills that are kept for each user, whether code may use them or not."""
        found: Skills = self._face(self._of.skills)
        return found

    def sessions(
        self, *, user: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions that are open now; nobody has to let go of these.

        With `user` only those of that user, with `labels` only those that have all of them.

        Raises:
            InvalidInput: the user or the labels can't be any.
        """
        found: list[Session] = self._call(self._of.sessions, user=user, labels=labels)
        return found

    def get(self, id: str, *, user: str | None = None) -> Session | None:
        """Return the session that this user has open under this id, None if there is none.

        It is not joined: it ends when those who opened it let go.

        Raises:
            InvalidInput: the id or the user is something else than a text.
        """
        found: Session | None = self._call(self._of.get, id, user=user)
        return found


Face.faces.update(
    {
        _OpenFile: OpenFile,
        _Files: Files,
        _StartedHandle: CommandHandle,
        _Session: Session,
        _Gateway: Gateway,
        _Skills: Skills,
    }
)
