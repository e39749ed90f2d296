"""What an agent tells those who show it: typed, in the order in which it happens."""

from dataclasses import dataclass, field
from typing import Literal

from divingbell.agent.model import ModelUsage
from divingbell.models import Event, Result

StopReason = Literal[
    "answered", "turns", "tokens", "money", "failing", "length", "refused", "cut", "empty"
]
"""Why it stopped: it has answered, a limit was reached, too many cells failed in a row, the reply
was too long, refused or cut short, or there was none."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """More of what the model thinks."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """More of the model's words."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeWritten:
    """Code that the model is writing: all of it so far."""

    call: str
    code: str


@dataclass(frozen=True, slots=True)
class CellStarted:
    """Code that is complete begins to run."""

    call: str
    code: str


@dataclass(frozen=True, slots=True)
class CellEvent:
    """Something that happened while a cell ran."""

    call: str
    event: Event


@dataclass(frozen=True, slots=True)
class CellEnded:
    """A cell has ended."""

    call: str
    result: Result


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is called by the model itself, without code."""

    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """That call has ended."""

    call: str
    name: str
    text: str
    """What the model reads of it."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class HelperStarted:
    """Code has given a part of the work to a helper."""

    helper: int
    """Its number in the conversation."""
    task: str
    tools: tuple[str, ...]
    tokens: int
    """Its budget."""


@dataclass(frozen=True, slots=True)
class HelperEnded:
    """A helper has ended. Its cost is in that of the answer, too."""

    helper: int
    task: str
    outcome: str
    """Why it stopped, as `StopReason` has it; failed, or cancelled."""
    total: ModelUsage
    turns: int


@dataclass(frozen=True, slots=True)
class UsageTold:
    """The cost of one request, and of all so far."""

    usage: ModelUsage
    total: ModelUsage
    window: int | None = None
    """The tokens that the model can read at once, where that is known."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the person should know, which the model has not said."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the answer."""

    reason: StopReason
    text: str
    """The model's last words."""
    total: ModelUsage = field(default_factory=ModelUsage)
    turns: int = 0


AgentEvent = (
    Thinking
    | Text
    | CodeWritten
    | CellStarted
    | CellEvent
    | CellEnded
    | ToolStarted
    | ToolEnded
    | HelperStarted
    | HelperEnded
    | UsageTold
    | Notice
    | Done
)
