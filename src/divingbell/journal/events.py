"""Events of the journal: typed, frozen, with payloads by reference.

Nothing in them is copied or written out. Whoever keeps an event keeps all that it refers to, so a
subscriber takes from it what it needs and lets go of it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from divingbell.command import CommandResult
from divingbell.models import Result
from divingbell.principal import Principal

if TYPE_CHECKING:
    import mcp_types

CallKind = Literal["tool", "resource", "prompt", "list", "completion", "question"]
"""A question is one to the gateway itself, such as `search_tools`; the others go to a server."""
CallOutcome = Literal["ok", "denied", "refused", "failed", "cancelled"]
"""denied: by a rule or a person. refused: a limit, wrong arguments, no such tool, a server that is
not there; nothing was sent. failed: it was sent, and the server or its result failed."""
By = Literal["code", "client"]
"""The code of a session, or a client that calls directly."""
RevealedBy = Literal["program", "command"]
"""A program that uses the library, or a person with `divingbell vault reveal`."""


def _now() -> float:
    return time.time()


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session was opened."""

    principal: Principal
    session: str
    """Its id, as its owner knows it."""
    key: str
    """A name that no other session has, nor a later one of its id."""
    at: float = field(default_factory=_now)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those that it was opened with."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session has ended, with everything that ran in it."""

    principal: Principal
    session: str
    key: str
    reason: str
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CellStarted:
    """Code is about to run (an intent: durable subscribers may refuse it)."""

    principal: Principal
    key: str
    cell: int
    code: str
    at: float = field(default_factory=_now)
    waited: float = 0.0
    """Seconds that it has waited for those before it in its session."""


@dataclass(frozen=True, slots=True)
class CellEnded:
    """A cell has ended. There is no result where its caller has left."""

    principal: Principal
    key: str
    cell: int
    code: str
    result: Result | None
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CellRefused:
    """Code was refused by its review, or by the person who was asked about it. None of it ran."""

    principal: Principal
    key: str
    cell: int
    """The number that it would have had; the next cell has the next one."""
    code: str
    reason: str
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class ExecutionRefused:
    """A cell or a command did not begin, as its user has used up a rate. It has no number, and what
    it would have run is not told: who may run nothing shall not fill a log either."""

    principal: Principal
    key: str
    kind: Literal["cell", "command"]
    reason: str
    retry_after: float
    """Seconds until there is room again."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CommandStarted:
    """A command is about to run (an intent: durable subscribers may refuse it)."""

    principal: Principal
    key: str
    number: int
    """Commands of a session are counted by themselves, from 1."""
    command: str
    """As it was asked for; words are quoted as for a shell."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """A command has ended. There is no result where no sandbox could be had for it."""

    principal: Principal
    key: str
    number: int
    command: str
    result: CommandResult | None
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CallRequested:
    """Something was asked of the gateway. Each has one `CallEnded`."""

    call: int
    """Its number, which the other events of the call have too."""
    principal: Principal
    key: str
    cell: int
    by: By
    kind: CallKind
    name: str
    """As it was asked for: text of others."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CallDecided:
    """A call was decided about by the rules."""

    call: int
    tool: str
    """`server.tool`."""
    action: Literal["allow", "deny", "ask"]
    rule: int | None
    """The number of the rule, counted from 1; None where no rule matched."""
    reason: str
    at: float = field(default_factory=_now)
    flow: int | None = None
    """The number of the rule about flows that refused it or has a person asked, counted from 1;
    None where none did."""
    source: str = ""
    """The earlier call that had set off that rule: `server.tool`."""


@dataclass(frozen=True, slots=True)
class CallSent:
    """A call is about to leave for its server (an intent: durable subscribers may refuse it)."""

    call: int
    principal: Principal
    key: str
    cell: int
    by: By
    kind: CallKind
    tool: str
    arguments: Mapping[str, Any]
    """With those that the host sets."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has ended, however far it came."""

    call: int
    principal: Principal
    key: str
    cell: int
    by: By
    kind: CallKind
    name: str
    outcome: CallOutcome
    code: str
    """The kind of its failure, as `ToolFailed.code` says; empty where it did not fail."""
    sent: bool
    """Whether it had left for its server."""
    arguments: Mapping[str, Any]
    """As they were given; empty where they were not parsed."""
    raw: bytes
    """The same as JSON, as it came from code; empty for those of a client."""
    result: "mcp_types.CallToolResult | Any"
    """As the server gave it; None where there is none."""
    body: bytes
    """The bytes that go back into the session; empty where none do."""
    seconds: float
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A person is asked about a call."""

    approval: int
    """The number of the question."""
    tool: str
    user: str
    key: str
    cell: int
    arguments: str
    """As the person reads them."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """The person has answered, or could not be asked."""

    approval: int
    tool: str
    user: str
    key: str
    cell: int
    word: str
    """yes, no, always or session; nobody where there was no answer."""
    comment: str
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class ServerUp:
    """An upstream server is ready."""

    server: str
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class ServerDown:
    """An upstream server is not there any more, or did not come up."""

    server: str
    state: str
    """failed or stopped."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person has signed in at a remote server."""

    principal: Principal
    """Who has: the user for whom it was done, on this machine."""
    server: str
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SignInFailed:
    """A person was to sign in at a remote server, and has not."""

    principal: Principal
    server: str
    reason: str
    """Words for a person, which may be the server's."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class Revealed:
    """Values that stood behind tokens are about to be given to somebody outside of the sandbox (an
    intent: durable subscribers may refuse it)."""

    principal: Principal
    """Whose conversation it is; nobody's in particular for a command, which looks in all."""
    count: int
    """How many tokens were replaced by their values. Neither is told here."""
    by: RevealedBy
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SkillChanging:
    """A skill is about to be changed (an intent: durable subscribers may refuse it)."""

    principal: Principal
    name: str
    change: Literal["save", "rollback", "remove"]
    key: str = ""
    """The session whose code changes it; empty where none does."""
    cell: int = 0
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SkillSaved:
    """A version of a skill is offered from now on: a new one, or an earlier one again."""

    principal: Principal
    name: str
    version: int
    digest: str
    """Of all its files."""
    origin: str
    """session, added, imported or catalogue; rollback for an earlier version."""
    key: str = ""
    """The session whose code has saved it; empty where none did."""
    cell: int = 0
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SkillUsed:
    """Code has got a skill to run it. Whether that went well is said by the end of its cell."""

    principal: Principal
    name: str
    version: int
    key: str
    cell: int
    """The cell that has imported it; 0 where none did."""
    tokens: int = 0
    """Those of its code, which nobody had to write again."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class SkillRemoved:
    """A skill was removed, with all its versions."""

    principal: Principal
    name: str
    versions: int
    """How many there were."""
    at: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """An agent has answered, or stopped: at a limit, or as it was interrupted."""

    principal: Principal
    key: str
    """The session that it works in."""
    model: str
    """The provider and the model."""
    mode: str
    """code, direct or hybrid."""
    arm: str
    """The arm of an experiment that the user is in; empty where there is none."""
    reason: str
    """Why it stopped: answered, turns, tokens, money, failing …, interrupted, or failed where its
    model did."""
    turns: int
    """Requests to the model."""
    input_tokens: int
    """As the provider counts them, those of helpers and of its cache included."""
    output_tokens: int
    cached_tokens: int
    cost: float | None
    """In US dollars; None where the price is not known."""
    cache_written_tokens: int = 0
    counted_tokens: int = 0
    """What was sent, as we count it."""
    at: float = field(default_factory=_now)


Intent: TypeAlias = CellStarted | CommandStarted | CallSent | Revealed | SkillChanging
JournalEvent: TypeAlias = (
    SessionOpened
    | SessionEnded
    | CellStarted
    | CellEnded
    | CellRefused
    | ExecutionRefused
    | CommandStarted
    | CommandEnded
    | CallRequested
    | CallDecided
    | CallSent
    | CallEnded
    | ApprovalAsked
    | ApprovalAnswered
    | ServerUp
    | ServerDown
    | SignedIn
    | SignInFailed
    | Revealed
    | SkillChanging
    | SkillSaved
    | SkillUsed
    | SkillRemoved
    | AnswerEnded
)
