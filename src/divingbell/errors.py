"""What can go wrong on the host. *User code failed* is a Result, never one of these.

    DivingbellError
    ├── ConfigError          the settings can't be used as they are
    ├── SandboxUnavailable   this machine can't seal a sandbox; nothing was run
    ├── ProfileError         the packages of the sandbox could not be prepared
    ├── CapacityError        every place is taken and none became free in time
    ├── SessionClosed        the session has ended
    ├── InvalidInput         code or a value that can't be given to a session
    └── FileRefused          a file can't be stored, read or listed

Each has a `code` that stays the same, for callers who are not in this process.
"""


class DivingbellError(Exception):
    """The root of all errors of Divingbell."""

    code = "divingbell"


class ConfigError(DivingbellError):
    code = "config"


class SandboxUnavailable(DivingbellError):
    code = "sandbox_unavailable"


class ProfileError(DivingbellError):
    code = "profile"


class CapacityError(DivingbellError):
    code = "capacity"


class SessionClosed(DivingbellError):
    code = "session_closed"


class InvalidInput(DivingbellError):
    code = "invalid_input"


class FileRefused(DivingbellError):
    code = "file_refused"
