"""Questions, progress and log messages of a server, passed on to whoever made the call."""

import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel

from divingbell.gateway.callers import Caller, ClientCaller
from divingbell.gateway.upstream.failures import readable
from divingbell.gateway.upstream.pending_calls import PendingCall, PendingCalls
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.shares import weight

MAX_MESSAGE = 4000
MOST_PROGRESS = 64
"""Messages of a call that its caller has not taken yet; more are dropped."""
MOST_LOGS = 64
"""Log messages of a server that are made ready to be passed on; more are dropped."""
MOST_QUESTIONS = 50
"""Questions during one call; more are declined: nobody answers that many, and a flood is one."""

Model = TypeVar("Model", bound=BaseModel)
Answer = TypeVar("Answer")


class Questions:
    """Passes progress, log messages and questions of one server on to whoever made the call."""

    def __init__(
        self, pending_calls: PendingCalls, redactor: Redactor, server_log: ServerLog
    ) -> None:
        self._pending_calls = pending_calls
        self._redactor = redactor
        self._log = server_log
        self._logs = 0

    async def _clean(self, model: Model) -> Model:
        return await weight.beside(self._redactor.clean_model, model)

    def progress(self, call: PendingCall) -> ProgressFnT | None:
        """Return the callback that hears the progress of one call, if there is somebody to tell."""
        caller = call.caller
        if caller is None:
            return None

        async def on_progress(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            if call.undelivered < MOST_PROGRESS:
                with call.delivering():
                    if message is not None:
                        message = await weight.beside(self._readable, message)
                    await caller.progress(progress, total, message)

        return on_progress

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on to the call that it must belong to, else to the server's log."""
        if self._logs >= MOST_LOGS:
            return
        self._logs += 1
        try:
            await self._pass_on(await self._clean(params))
        finally:
            self._logs -= 1

    async def _pass_on(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        call = self._pending_calls.only()
        if call is not None and call.caller is not None:
            if call.undelivered < MOST_PROGRESS:
                with call.delivering():
                    await call.caller.log(params)
        else:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                words = await weight.beside(self._log_text, params.data)
                self._log.note(f"{params.level}: {words}")

    def _log_text(self, data: Any) -> str:
        return self._readable(data if isinstance(data, str) else json.dumps(data))

    def _readable(self, words: str) -> str:
        return readable(words, self._redactor, MAX_MESSAGE)

    async def elicit(
        self, context: Any, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """Pass on a question to a person, in the older protocol."""

        async def ask(caller: Caller) -> Any:
            return await caller.elicit(await self._clean(params))

        return await self._ask(self._pending_calls.only(), ask)

    async def sample(self, context: Any, params: mcp_types.CreateMessageRequestParams) -> Any:
        """Pass on a question to the caller's model, in the older protocol."""

        async def ask(caller: Caller) -> Any:
            return await caller.sample(await self._clean(params))

        return await self._ask(self._pending_calls.only(), ask)

    async def answers(
        self, requests: dict[str, mcp_types.InputRequest], call: PendingCall
    ) -> dict[str, Any]:
        """Answer the questions that a result of the newer protocol brings.

        A caller that is a client itself gets them all at once, under the server's own keys; any
        other is asked one after the other.

        Raises:
            MCPError: one of them was declined.
        """
        if isinstance(call.caller, ClientCaller):
            with call.asking():
                asked = {key: await self._clean(request) for key, request in requests.items()}
                return await call.caller.answers(asked)
        found: dict[str, Any] = {}
        for key, request in requests.items():
            answer = await self._ask(call, self._asker(request))
            if isinstance(answer, mcp_types.ErrorData):
                raise MCPError.from_error_data(answer)
            found[key] = answer
        return found

    def _asker(self, request: mcp_types.InputRequest) -> Callable[[Caller], Awaitable[Any]]:
        async def ask(caller: Caller) -> Any:
            if isinstance(request, mcp_types.ElicitRequest):
                return await caller.elicit(await self._clean(request.params))
            if isinstance(request, mcp_types.CreateMessageRequest):
                return await caller.sample(await self._clean(request.params))
            return _declined("there are no roots here")

        return ask

    async def _ask(
        self, call: PendingCall | None, ask: Callable[[Caller], Awaitable[Answer]]
    ) -> Answer | mcp_types.ErrorData:
        if call is None or call.caller is None:
            return _declined("it can't be said which caller this is for, so nobody is asked")
        if call.questions >= MOST_QUESTIONS:
            return _declined("there were too many questions during this call")
        with call.asking():
            try:
                return await ask(call.caller)
            except Exception as error:
                self._log.note(f"its question could not be passed on: {type(error).__name__}")
                return _declined("the caller could not be asked")


def _declined(reason: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=reason)
