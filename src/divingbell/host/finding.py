"""One thing that was looked at, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "missing", "unused"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    """ok; warn: it works, but weaker or not with everything; missing: it is not there; unused: it
    is not there or not ready, and these settings do without it."""
    detail: str
    advice: str = ""
    """The way to mend it; says the command to run."""
    blocking: bool = False
    """The local backend can't work without it."""
