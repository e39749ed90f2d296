"""Models of commands: what one may be given, what it tells while it runs, and its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from divingbell.models import Failure, LimitName, Status, Usage, short_repr

CommandLine = str | Sequence[str]
"""A text for the shell, or the words of a program and its arguments, which no shell sees."""
CommandEventType = Literal["stdout", "stderr", "notice", "done"]


class CommandOptions(TypedDict, total=False):
    """The options of a command, by name."""

    cwd: str
    """The folder that it runs in, below /workspace where it is relative. Default: /workspace."""
    env: Mapping[str, str]
    """Variables of its environment, besides those of the session."""
    timeout: float | None
    """Seconds that it may take. Default: the limit `timeout` of the session, and none in the
    background."""
    input: str | bytes
    """What it reads from its standard input, which is empty otherwise."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: how it ended and what it wrote."""

    status: Status
    exit_code: int
    """As a shell has it: 127 where there is no such program, 128 + n where signal n ended it."""
    stdout: str = ""
    """Its start and its end, where it is more than the limit `output`."""
    stderr: str = ""
    """The same of the other stream."""
    error: Failure | None = None
    """The reason, where the status is not ok."""
    limit: LimitName | None = None
    usage: Usage = field(default_factory=Usage)
    command: str = ""
    """The command as it was asked for; words are quoted as for a shell."""
    number: int = 0
    """Commands of a session are counted from 1."""
    notes: tuple[str, ...] = ()
    """Notes for the reader: output that was cut, processes that were ended …"""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, slots=True)
class CommandEvent:
    """Something that happened while a command ran."""

    type: CommandEventType
    text: str = ""
    """The text of stdout, stderr and notice."""
    result: CommandResult | None = None
    """The whole result, with done."""

    def __repr__(self) -> str:
        return short_repr(self)
