"""The exit statuses of the command. They are documented, so they stay as they are."""

from typing import TYPE_CHECKING

from divingbell.errors import ConfigError, DivingbellError, FileRefused, InvalidInput, SkillRefused

if TYPE_CHECKING:  # they take as long to load as the rest of `--help`
    from divingbell.models import Result, Status

OK = 0
FAILED = 1
USAGE = 2
UNAVAILABLE = 3
LIMIT = 4
KILLED = 5
MODEL = 6
TIMEOUT = 124
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

MEANINGS = {
    OK: "it went well",
    FAILED: "the code failed (sys.exit(N) gives N); a promise was found broken (doctor --check); "
    "a call is denied (policy explain); or a token is not known (vault reveal)",
    USAGE: "wrong usage or configuration",
    UNAVAILABLE: "the sandbox is not available here: see divingbell doctor",
    LIMIT: "a limit was reached: memory, CPU, processes, disk, output or the host's time",
    KILLED: "the interpreter was killed or crashed",
    MODEL: "the model gave no answer: its key, its name, its limits or the network (chat)",
    TIMEOUT: "the code ran out of time",
    INTERRUPTED: "interrupted (Ctrl-C)",
    BROKEN_PIPE: "whoever read the output has gone",
    TERMINATED: "ended by SIGTERM or SIGHUP",
}

_OF_STATUS: "dict[Status, int]" = {
    "ok": OK,
    "error": FAILED,
    "limit": LIMIT,
    "killed": KILLED,
    "timeout": TIMEOUT,
    "cancelled": INTERRUPTED,
}


def of_result(result: "Result") -> int:
    """Return the exit status for how a cell ended; of code that called `sys.exit`, its own."""
    if result.error is not None and result.error.exit_status is not None:
        return result.error.exit_status
    return _OF_STATUS[result.status]


def of_error(error: DivingbellError) -> int:
    """Return the exit status for an error of the host: the caller's doing, or the machine's."""
    if isinstance(error, ConfigError | InvalidInput | FileRefused | SkillRefused):
        return USAGE
    return UNAVAILABLE
