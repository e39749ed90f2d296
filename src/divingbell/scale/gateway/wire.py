"""Values of MCP on the line, as JSON; much of it is written and read in a thread."""

from typing import Any, Literal, TypeVar

import mcp_types
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from divingbell.shares import weight
from divingbell_inside import frames

LARGE = 1 << 16
"""Bytes of JSON that are read in a thread."""

Made = TypeVar("Made")


class Told(BaseModel):
    """The news of a server, as its replicas have to know it."""

    state: Literal["idle", "connecting", "ready", "failed", "stopped"]
    reason: str
    instructions: str | None
    protocol_version: str | None
    pid: int | None
    log_path: str
    tools: list[mcp_types.Tool] | None
    """None where they are as they were, or not known yet."""
    changes: list[Literal["resources", "prompts"]]


class Completion(BaseModel):
    """What a completion is asked for."""

    ref: mcp_types.ResourceTemplateReference | mcp_types.PromptReference
    argument: mcp_types.CompletionArgument
    context: dict[str, str] | None


class Progress(BaseModel):
    """A message about the progress of a call."""

    progress: float
    total: float | None
    message: str | None


TOLD = TypeAdapter(Told)
COMPLETION = TypeAdapter(Completion)
PROGRESS = TypeAdapter(Progress)
GIVEN: TypeAdapter[dict[str, Any] | None] = TypeAdapter(dict[str, Any] | None)
TEXTS: TypeAdapter[dict[str, str] | None] = TypeAdapter(dict[str, str] | None)
LOGGED = TypeAdapter(mcp_types.LoggingMessageNotificationParams)
ELICIT: TypeAdapter[mcp_types.ElicitRequestParams] = TypeAdapter(mcp_types.ElicitRequestParams)
SAMPLE = TypeAdapter(mcp_types.CreateMessageRequestParams)
ELICITED: TypeAdapter[mcp_types.ElicitResult | mcp_types.ErrorData] = TypeAdapter(
    mcp_types.ElicitResult | mcp_types.ErrorData
)
SAMPLED: TypeAdapter[
    mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools | mcp_types.ErrorData
] = TypeAdapter(
    mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools | mcp_types.ErrorData
)
CALLED = TypeAdapter(mcp_types.CallToolResult)
READ = TypeAdapter(mcp_types.ReadResourceResult)
GOT = TypeAdapter(mcp_types.GetPromptResult)
COMPLETED = TypeAdapter(mcp_types.CompleteResult)
RESOURCES = TypeAdapter(list[mcp_types.Resource])
TEMPLATES = TypeAdapter(list[mcp_types.ResourceTemplate])
PROMPTS = TypeAdapter(list[mcp_types.Prompt])


async def written(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        FrameError: it can't be written, as half a character can't.
    """
    return await weight.beside(_write, value)


def _write(value: Any) -> bytes:
    try:
        return to_json(value, by_alias=True, inf_nan_mode="constants")
    except PydanticSerializationError as error:
        raise frames.FrameError(f"a value can't be written: {error}") from None


async def read(kind: TypeAdapter[Made], body: bytes) -> Made:
    """Return the value that was written.

    Raises:
        FrameError: it is of another kind.
    """
    if len(body) <= LARGE:
        return _read(kind, body)
    return await weight.in_thread(lambda: _read(kind, body))


def _read(kind: TypeAdapter[Made], body: bytes) -> Made:
    try:
        return kind.validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise frames.FrameError(f"a value of another kind: {error.error_count()} faults") from None
