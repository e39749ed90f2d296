"""Exchanges with a server: a request, what it asks in between, and the result."""

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import mcp_types
from mcp import Client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter

from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.pending_calls import PendingCall
from divingbell.gateway.upstream.questions import Questions

MOST_ROUNDS = 10
ROUND_PAUSE = 0.1
"""Seconds until it is sent again, where a server wants that and asks nothing."""

Result = TypeVar("Result", bound=BaseModel)


class Exchange(Generic[Result]):
    """A kind of request, with the kind of result that answers it."""

    def __init__(
        self,
        request: type[BaseModel],
        parameters: type[BaseModel],
        result: type[Result],
        *,
        may_ask: bool = True,
    ) -> None:
        self._request = request
        self._parameters = parameters
        self._result = result
        answer: Any = result | mcp_types.InputRequiredResult if may_ask else result
        self._answer: TypeAdapter[Any] = TypeAdapter(answer)

    async def run(
        self,
        client: Client,
        given: Mapping[str, Any],
        call: PendingCall,
        questions: Questions,
        log_level: mcp_types.LoggingLevel,
    ) -> Result:
        """Send a request until it has its result: in between the server may ask for input.

        Raises:
            ToolFailed: it asks without end.
            Exception: whatever the SDK raises.
        """
        on_progress = questions.progress(call)
        more: dict[str, Any] = {}
        if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            more["_meta"] = {mcp_types.LOG_LEVEL_META_KEY: log_level}
        for _ in range(MOST_ROUNDS):
            request: Any = self._request(params=self._parameters(**given, **more))
            result = await client.session.send_request(
                request, self._answer, progress_callback=on_progress
            )
            if isinstance(result, self._result):
                return result
            assert isinstance(result, mcp_types.InputRequiredResult)
            more.pop("input_responses", None)
            if result.input_requests:
                answers = await questions.answers(result.input_requests, call)
                more["input_responses"] = answers
            else:
                await asyncio.sleep(ROUND_PAUSE)
            more["request_state"] = result.request_state
        raise ToolFailed(f"it asked for more input {MOST_ROUNDS} times and gave no result")


CALL = Exchange(
    mcp_types.CallToolRequest, mcp_types.CallToolRequestParams, mcp_types.CallToolResult
)
READ = Exchange(
    mcp_types.ReadResourceRequest,
    mcp_types.ReadResourceRequestParams,
    mcp_types.ReadResourceResult,
)
PROMPT = Exchange(
    mcp_types.GetPromptRequest, mcp_types.GetPromptRequestParams, mcp_types.GetPromptResult
)
COMPLETION = Exchange(
    mcp_types.CompleteRequest,
    mcp_types.CompleteRequestParams,
    mcp_types.CompleteResult,
    may_ask=False,
)
