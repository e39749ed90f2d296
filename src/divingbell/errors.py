"""Errors of the host. *User code failed* is a Result, never one of these.

    DivingbellError
    ├── ConfigError          the settings can't be used as they are
    ├── SandboxUnavailable   this machine can't seal a sandbox; nothing was run
    ├── ProfileError         the packages of the sandbox could not be prepared
    ├── CapacityError        every place is taken and none became free in time
    ├── RateExceeded         the user has had all that a rate allows, for now
    ├── SessionClosed        the session has ended
    ├── WrongLoop            it belongs to another event loop, or to another process
    ├── InvalidInput         code or a value that can't be given to a session, or taken
    │                        from it
    ├── NotRecorded          it could not be written down, so it was not done
    ├── FileRefused          a file can't be stored, read or listed
    │   ├── FileMissing      there is no such file or folder
    │   ├── FileTooLarge     it has more bytes than were asked for
    │   └── DiskFull         the session's disk has no room for it
    ├── SkillRefused         a skill that can't be kept, or used, as it is
    │   └── SkillMissing     there is none of that name, or no such version
    ├── ToolFailed           a call of a tool did not succeed; its code says how
    ├── ServiceUnreachable   a service elsewhere does not answer, or has gone
    └── ServiceRefused       it has refused a request, for a reason that none of these is

Each has a `code` that stays the same, for callers who are not in this process.
"""

from typing import Literal


class DivingbellError(Exception):
    """The root of all errors of Divingbell."""

    code: str = "divingbell"


class ConfigError(DivingbellError):
    code = "config"


class SandboxUnavailable(DivingbellError):
    code = "sandbox_unavailable"


class ProfileError(DivingbellError):
    code = "profile"


class CapacityError(DivingbellError):
    code = "capacity"

    def __init__(self, message: str, *, of_user: bool = False) -> None:
        super().__init__(message)
        self.of_user = of_user
        """Whether one user has taken all places of theirs; others may have some."""


class RateExceeded(DivingbellError):
    """Raised for an execution that did not begin: its user has used up a rate of the policy."""

    code = "rate_exceeded"

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds until there is room again, if nothing else of that user runs meanwhile."""


class SessionClosed(DivingbellError):
    code = "session_closed"


class WrongLoop(DivingbellError):
    code = "wrong_loop"


class InvalidInput(DivingbellError):
    code = "invalid_input"


class NotRecorded(DivingbellError):
    code = "not_recorded"


class UnknownToken(DivingbellError):
    """Raised for a token, such as `[EMAIL_482715]`, that a conversation does not have."""

    code = "unknown_token"


class FileRefused(DivingbellError):
    code = "file_refused"


class FileMissing(FileRefused):
    code = "file_missing"


class FileTooLarge(FileRefused):
    code = "file_too_large"


class DiskFull(FileRefused):
    code = "disk_full"


class SkillRefused(DivingbellError):
    code = "skill_refused"


class SkillMissing(SkillRefused):
    code = "skill_missing"
    near: tuple[str, ...] = ()
    """Skills with a name like the one that is missing."""


ToolFailure = Literal[
    "tool_error",  # the tool itself said so
    "tool_denied",
    "tool_unknown",
    "tool_arguments",
    "tool_timeout",
    "tool_unavailable",
    "tool_limit",
    "tool_result",
    "tool_cancelled",
]


class ToolFailed(DivingbellError):
    """Raised inside the session's code as ToolError, or a kind of it."""

    code: ToolFailure = "tool_error"

    def __init__(self, message: str, code: ToolFailure = "tool_error") -> None:
        super().__init__(message)
        self.code = code


Refusal = Literal[
    "bad_request",
    "conversation_busy",
    "cursor_gone",
    "draining",
    "event_unknown",
    "forbidden",
    "idempotency_key_reused",
    "internal",
    "invalid_request",
    "limit_too_large",
    "method_not_allowed",
    "not_acceptable",
    "not_found",
    "not_in_a_frame",
    "not_private",
    "not_ready",
    "queue_full",
    "range_not_satisfiable",
    "too_large",
    "too_many_conversations",
    "too_many_requests",
    "unauthorized",
    "unsupported_media_type",
    "wrong_host",
    "wrong_origin",
]
"""The codes of requests over HTTP that were refused before anything of this package was asked."""


class ServiceUnreachable(DivingbellError):
    code = "service_unreachable"


class ServiceRefused(DivingbellError):
    code = "service_refused"
