"""The settings of the audit log: whether there is one, where it lies, and who can prove it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from divingbell.errors import ConfigError
from divingbell.models import MB, parse_size
from divingbell.settings.markers import Described, FilePath, at_least

AuditMode = Literal["off", "on", "required"]
"""Nothing is recorded; no tool is called without a record; and no code is run without one."""
LEAST_SEGMENT = 1 * MB


@dataclass(frozen=True, slots=True)
class AuditLogSettings:
    """The `[audit_log]` table."""

    folder: FilePath = ""
    """The folder of the log; if it is not set, `audit` in the folder for what lasts."""
    heads: FilePath = ""
    """The second place: a folder for the signed heads, best on another machine; if it is not set,
    `heads` in the folder of the log."""
    key_file: FilePath = ""
    """A file with the key that signs heads; the variable DIVINGBELL_AUDIT_KEY comes before it."""
    segment: Annotated[
        int, parse_size, Described("a size"), at_least(LEAST_SEGMENT, "1MB or more")
    ] = 64 * MB
    """Bytes of a file of the log, after which the next one is begun."""

    def check_required(self, has_variable: bool) -> None:
        """Raise ConfigError if these settings can't prove what `audit = "required"` promises."""
        if not self.key_file and not has_variable:
            raise ConfigError(
                'audit = "required" needs a key that does not lie beside the log: name it with '
                "key_file in [audit_log], or set DIVINGBELL_AUDIT_KEY"
            )
        if not self.heads:
            raise ConfigError(
                'audit = "required" needs a second place for the heads of the log: name a folder '
                "that others keep with heads in [audit_log]"
            )
