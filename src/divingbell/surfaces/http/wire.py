"""Wire types: what clients send and read, as types of their own.

They are strict: `false` is no number, and a name that is not known is an error. The description of
the API is made from them.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from divingbell.session.ownership import NAME

MAX_TIMEOUT = 3600.0
MAX_CODE = 8 << 20
MAX_PAGE = 200
MAX_QUERY = 2_000

Seconds = Annotated[float, Meta(gt=0, le=MAX_TIMEOUT)]
Name = Annotated[str, Meta(pattern=f"^{NAME}$", max_length=64)]
Count = Annotated[int, Meta(gt=0, lt=1 << 53)]
Bytes = Annotated[int, Meta(gt=0, lt=1 << 53)] | Annotated[str, Meta(max_length=40)]


class Given(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends."""


class Told(msgspec.Struct, kw_only=True):
    """What a client reads."""


class Nothing(Given):
    """No parameters at all."""


class Page(Given):
    """A part of a list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None


class LongPage(Page):
    """A part of a list, as long as parts may be where nothing else is said."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = MAX_PAGE


class LimitsGiven(Given):
    """The limits of a session: those that are left out are as the server has them."""

    timeout: Seconds | None = None
    ceiling: Seconds | None = None
    cpu_seconds: Seconds | None = None
    cores: Annotated[float, Meta(gt=0, le=1024)] | None = None
    memory: Bytes | None = None
    processes: Count | None = None
    open_files: Count | None = None
    disk: Bytes | None = None
    output: Bytes | None = None


class SessionGiven(Given):
    """A session that is to be opened."""

    id: Name | None = None
    limits: LimitsGiven | None = None
    env: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    idle_timeout: Annotated[float, Meta(gt=0)] | None = None


class LimitsTold(Told):
    """The limits in force. Times are seconds, sizes are bytes."""

    timeout: float
    ceiling: float
    cpu_seconds: float
    cores: float
    memory: int
    processes: int
    open_files: int
    disk: int
    output: int


class SessionTold(Told):
    """A session."""

    id: str
    state: Literal["idle", "running"]
    cells: int
    labels: dict[str, str]
    limits: LimitsTold
    backend: str
    cpu_seconds: float
    memory: int | None
    memory_peak: int | None
    created_at: str
    expires_at: str | None
    execution: str | None


class SessionsTold(Told):
    """Sessions of the user."""

    items: list[SessionTold]
    next: str | None


class Interrupted(Told):
    """Whether a cell was running."""

    interrupted: bool


class VariableTold(Told):
    """A variable of a session, described."""

    name: str
    type: str
    shape: tuple[int, ...] | None
    length: int | None
    preview: str | None


class VariablesTold(Told):
    """The variables of a session: all in one, since so many are described and no more."""

    items: list[VariableTold]


class CompleteGiven(Given):
    """Code, and the place where it is to go on."""

    code: Annotated[str, Meta(max_length=MAX_CODE)]
    position: Annotated[int, Meta(ge=0, lt=1 << 53)]


class CompletionTold(Told):
    """One way in which code could go on."""

    start: int
    end: int
    text: str


class CompletionsTold(Told):
    """The ways in which code could go on."""

    items: list[CompletionTold]


class ExecuteGiven(Given):
    """Code to run in a session."""

    code: Annotated[str, Meta(max_length=MAX_CODE)]
    timeout: Seconds | None = None
    context: dict[str, Any] | None = None
    argv: list[str] | None = None
    on_disconnect: Literal["cancel", "keep"] = "cancel"


class ExecuteOnceGiven(ExecuteGiven):
    """Code to run in a session of its own, which ends with it."""

    limits: LimitsGiven | None = None
    env: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class ExecutionTold(Told):
    """A run of code: its state, and its result once it has ended."""

    id: str
    session: str
    state: Literal["queued", "running", "ended"]
    created_at: str
    started_at: str | None
    ended_at: str | None
    result: msgspec.Raw | UnsetType = UNSET


class ExecutionsTold(Told):
    """Runs of the user, the newest first; without their results."""

    items: list[ExecutionTold]
    next: str | None


class Features(Told):
    """What this server has."""

    conversations: bool
    skills: bool
    audit: bool


class Me(Told):
    """Who the token is of, and what it lets its user do."""

    user: str
    scopes: list[str]
    version: str
    backend: str
    privacy: str
    features: Features


class ApprovalTold(Told):
    """A question about a call: may it be made?"""

    id: str
    tool: str
    arguments: str
    reason: str
    session: str
    cell: int
    execution: str | None
    waiting: int
    asked_at: str


class ApprovalsTold(Told):
    """Questions that wait for an answer, the oldest first."""

    items: list[ApprovalTold]
    next: str | None


class WordGiven(Given):
    """A person's word: yes to this call, no, or yes to all like it in this run or session."""

    word: Literal["yes", "no", "always", "session"]
    comment: Annotated[str, Meta(max_length=500)] = ""
