"""What the agent needs of a language model, whoever serves it."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from divingbell.agent.history import Entry, Replied
from divingbell.errors import DivingbellError

Ending = Literal["answered", "called", "length", "refused", "cut"]
"""How a reply ended: with an answer, with calls of tools, at the limit of its length, refused by
the provider's filter, or cut: the stream ended before the model had."""

FailureKind = Literal[
    "key",
    "model",
    "rate",
    "quota",
    "window",
    "rejected",
    "server",
    "connection",
    "timeout",
    "reply",
]


class ModelFailed(DivingbellError):
    """Raised where a model gave no reply. The message says what can be done about it."""

    code = "model_failed"

    def __init__(self, message: str, kind: FailureKind, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        """What was wrong: the key, the model's name, the rate …"""
        self.retry_after = retry_after
        """Seconds after which the provider wants to be asked again, where it said so."""


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as a model reads it."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that a model is sent."""

    instructions: str
    entries: tuple[Entry, ...]
    tools: tuple[ModelTool, ...] = ()
    output_tokens: int | None = None
    """The most tokens that it may write; None for the provider's own limit."""

    @property
    def besides(self) -> str:
        """What is sent besides the conversation: the instructions, and the tools as JSON."""
        tools = [asdict(tool) for tool in self.tools]
        return self.instructions + json.dumps(tools, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What a request has cost, as the provider counts it."""

    input_tokens: int = 0
    """All that was read, the cached part included."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Read from the provider's cache."""
    cache_written_tokens: int = 0
    cost: float | None = None
    """In US dollars; None where the price is not known."""
    counted_tokens: int = 0
    """What was sent, as we count it, whatever the provider says."""

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        costs = [each for each in (self.cost, other.cost) if each is not None]
        return ModelUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_written_tokens + other.cache_written_tokens,
            sum(costs) if costs else None,
            self.counted_tokens + other.counted_tokens,
        )

    def __sub__(self, other: "ModelUsage") -> "ModelUsage":
        return ModelUsage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cached_tokens - other.cached_tokens,
            self.cache_written_tokens - other.cache_written_tokens,
            None if self.cost is None else self.cost - (other.cost or 0.0),
            self.counted_tokens - other.counted_tokens,
        )


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """More of what the model thinks, where it shows that."""

    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More of the text of its reply."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A call of a tool that is being written."""

    id: str
    name: str
    arguments: str
    """All of them so far, which is the start of JSON."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The provider can't reply now: it will be asked again in so many seconds."""

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that is complete."""

    entry: Replied
    ending: Ending
    usage: ModelUsage = field(default_factory=ModelUsage)


Piece = ThinkingPiece | TextPiece | CallPiece | Pause | Reply


class Model(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """The provider and the model, as in `anthropic:claude-sonnet-5`."""

    @property
    def window(self) -> int | None:
        """The tokens that it can read at once, where that is known."""

    @property
    def sees_images(self) -> bool: ...

    @property
    def calls_tools(self) -> bool:
        """Whether it can call tools; if not, code is read from the fences of its text."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Yield the reply as it is written, and at the end the whole of it.

        Raises:
            ModelFailed: there is none.
        """

    async def close(self) -> None:
        """End its connections. May be called again."""
