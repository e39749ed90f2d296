"""The outcome of a cell or a command: which status it has, and the words for how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from divingbell.models import LIMIT_NAMES, Failure, LimitName, Limits, State, Status
from divingbell.session.intake import field_of
from divingbell_inside import frames

StopReason = Literal["timeout", "ceiling", "cpu", "rate", "cancelled", "output", "host"]
MAX_FAILURE = 1 << 16
BROKEN_LINE = (
    "the interpreter sent the host something that makes no sense ({}); code must not write to "
    "descriptors that it has not opened"
)

_ADVICE: dict[str, str] = {
    "memory": "Work on less data at once, and delete what is no longer needed (`del df`); whoever "
    "runs Divingbell can raise the limit `memory`.",
    "cpu": "Use a faster way (vectorise, sample the data) or split the work into several runs.",
    "rate": "Begin less in the background, and end what is no longer needed.",
    "processes": "Start fewer processes or threads, and wait for those that you have started.",
    "disk": "Remove files from /workspace and /tmp, or write less.",
    "output": "Print a summary instead, or write to a file in /workspace.",
    "host": "Print less, show less and make fewer calls at once, or write to a file in /workspace.",
    "ceiling": "Start the slow work with one cell and look for its result with another.",
    "timeout": "Split the work into several runs, use a faster way, or ask for a longer timeout.",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run: by the interpreter's own word, or with its loss."""

    finished: bool
    """The interpreter said so itself, and lives."""
    header: frames.Header | None = None
    reason: str = ""
    body: bytes = b""
    """The value of the cell as JSON, not looked at yet."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of the session's state: kept, rewound to a copy, or fresh."""

    state: State = "kept"
    cell: int | None = None
    """Variables are as they were after this one, where they are rewound."""
    files_lost: bool = False
    """The sandbox itself was lost, and the workspace with it."""
    reason: str = ""
    """The cause, where no result has told it."""


class Outcome(NamedTuple):
    """The status of a cell, the limit that it met, and its failure."""

    status: Status
    limit: LimitName | None = None
    failure: Failure | None = None


class _Stop(NamedTuple):
    """The status, limit and words that go with one reason for stopping a cell or a command."""

    status: Status
    limit: LimitName | None
    words: Callable[[Limits, float], str]
    """From the limits, and the seconds that it had. They go on from "the cell"."""


_STOPS: Mapping[StopReason, _Stop] = {
    "timeout": _Stop("timeout", None, lambda _, timeout: f"ran longer than its {timeout:g} s"),
    "ceiling": _Stop(
        "timeout",
        None,
        lambda limits, timeout: (
            f"and its tools took longer than the ceiling of {max(limits.ceiling, timeout):g} s"
        ),
    ),
    "cpu": _Stop(
        "limit",
        "cpu",
        lambda limits, _: f"used more than its {limits.cpu_seconds:g} s of CPU time",
    ),
    "rate": _Stop(
        "limit",
        "cpu",
        lambda _, __: "was ended: its user has used far more CPU time than cpu_rate_per_user",
    ),
    "output": _Stop("limit", "output", lambda _, __: "printed more than its disk can keep"),
    "host": _Stop(
        "limit",
        "host",
        lambda _, __: "sent more than the host could take in beside its other sessions",
    ),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The facts about a cell that has ended, and the outcome that follows from them."""

    limits: Limits
    timeout: float
    limits_by: str
    """The means that enforce memory, CPU and processes: cgroups or rlimits."""
    stopped_for: StopReason | None
    killed_for_memory: bool
    """A process of the session was ended because memory was used up."""
    subject: str = "cell"
    """What it is about, in a word."""

    def outcome(self, ending: Ending) -> Outcome:
        """Return how the cell ended; the first that fits counts."""
        header = ending.header or {}
        if self.stopped_for == "cancelled":
            words = f"the {self.subject} was interrupted"
            return Outcome("cancelled", None, Failure("Cancelled", words))
        if self.stopped_for is not None:
            stop = _STOPS[self.stopped_for]
            words = f"the {self.subject} {stop.words(self.limits, self.timeout)}"
            return Outcome(stop.status, stop.limit, _exceeded(self.stopped_for, words))
        if not ending.finished and self.killed_for_memory:
            return Outcome("limit", "memory", _exceeded("memory", self.memory_words()))
        if not ending.finished:
            return Outcome("killed", None, Failure("Killed", ending.reason))
        if header.get("status") == "ok":
            return Outcome("ok")
        failure, limit = _failure_of(header)
        if limit is not None and failure is not None:
            return Outcome("limit", limit, self._advised(failure, limit))
        failure = failure or Failure("KeyboardInterrupt", "the cell was interrupted")
        return Outcome("error", None, failure)

    def memory_words(self) -> str:
        """Say how much memory there is, and for whom."""
        size = size_in_words(self.limits.memory)
        if self.limits_by == "rlimits":
            return f"each process of the session may allocate {size} of memory"
        return f"the session may hold {size} of memory, files included"

    def _advised(self, failure: Failure, limit: LimitName) -> Failure:
        """Return the code's own exception, with what it has to do with a limit."""
        limits = self.limits
        words = {
            "memory": self.memory_words(),
            "disk": f"the files of the session may take {size_in_words(limits.disk)}",
            "processes": f"the session may have {limits.processes} processes and threads",
        }.get(limit, limit)
        advice = f"{words}. {_ADVICE[limit]}"
        return Failure(
            failure.type,
            f"{failure.message} ({advice})" if failure.message else advice,
            f"{failure.traceback}{advice}\n",
        )


def _exceeded(name: str, words: str) -> Failure:
    return Failure("LimitExceeded", f"{words}. {_ADVICE[name]}")


def _exit_status(error: frames.Header) -> int | None:
    found = field_of(error, "exit_status", int)
    return found if found is not None and 0 <= found <= 255 else None


def _failure_of(header: frames.Header) -> tuple[Failure | None, LimitName | None]:
    error = header.get("error")
    if not isinstance(error, dict):
        return None, None
    failure = Failure(
        field_of(error, "type", str, "Exception")[:MAX_FAILURE],
        field_of(error, "message", str, "")[:MAX_FAILURE],
        field_of(error, "traceback", str, "")[:MAX_FAILURE],
        exit_status=_exit_status(error),
    )
    limit = error.get("limit")
    return failure, next((name for name in LIMIT_NAMES if name == limit), None)


def state_note(change: StateChange) -> str:
    """Say what became of the variables and files of the session."""
    if change.files_lost:
        return (
            "the sandbox was lost and a new one is in its place: variables, imports and the files "
            "in /workspace are gone; define and upload again what you need"
        )
    if change.state == "rewound":
        return (
            "the interpreter had to be replaced: variables are as they were after cell "
            f"{change.cell}; "
            "files in /workspace are as they are now; processes and threads were ended and "
            "open files and connections are not restored"
        )
    return (
        "the interpreter had to be replaced by a fresh one: variables and imports are gone, "
        "files in /workspace are still there; define again what you need"
    )


def size_in_words(number: int) -> str:
    """Return a number of bytes as people say it: "512 MB"."""
    return f"{number >> 20} MB" if number >= 1 << 20 else f"{number >> 10} KB"
