"""What a server says and asks while it works, and whom it reaches."""

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
from divingbell.gateway.upstream.flights import Flight, Flights
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.server_log import ServerLog
from divingbell.shares import weight
from divingbell.text import texts_in

MAX_MESSAGE = 4000
MOST_PROGRESS = 64
"""Messages of a call on their way to its caller; more are dropped."""
MOST_LOGS = 64
"""Log messages of a server that are made ready to be passed on; more are dropped."""
MOST_QUESTIONS = 50
"""Questions during one call; more are declined: nobody answers that many, and a flood is one."""

Model = TypeVar("Model", bound=BaseModel)
Answer = TypeVar("Answer")


class Questions:
    """Passes progress, log messages and questions of one server on to whoever made the call."""

    def __init__(self, flights: Flights, redactor: Redactor, server_log: ServerLog) -> None:
        self._flights = flights
        self._redactor = redactor
        self._log = server_log
        self._logs = 0

    def cleaned(self, model: Model) -> Model:
        """Return a result without the server's secrets."""
        if not self._redactor:
            return model
        dumped = model.model_dump(by_alias=True, mode="json", exclude_unset=True)
        # All of its texts as one: most results hold no secret, and that is seen at one look.
        if not self._redactor.finds("\n".join(texts_in(dumped))):
            return model
        cleaned = self._redactor.clean_value(dumped)
        return type(model).model_validate(cleaned, by_name=False)

    async def _clean(self, model: Model) -> Model:
        return await weight.beside(self.cleaned, model)

    def progress(self, flight: Flight) -> ProgressFnT | None:
        """Return the callback that hears the progress of one call, if there is somebody to tell."""
        caller = flight.caller
        if caller is None:
            return None

        async def heard(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            if flight.telling < MOST_PROGRESS:
                with flight.told():
                    if message is not None:
                        message = await weight.beside(self._told, message)
                    await caller.progress(progress, total, message)

        return heard

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """A log message. It goes to the call that it must belong to, else to the server's log."""
        if self._logs >= MOST_LOGS:
            return
        self._logs += 1
        try:
            await self._pass_on(await self._clean(params))
        finally:
            self._logs -= 1

    async def _pass_on(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        flight = self._flights.only()
        if flight is not None and flight.caller is not None:
            if flight.telling < MOST_PROGRESS:
                with flight.told():
                    await flight.caller.log(params)
        else:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                words = await weight.beside(self._written, params.data)
                self._log.note(f"{params.level}: {words}")

    def _written(self, data: Any) -> str:
        return self._told(data if isinstance(data, str) else json.dumps(data))

    def _told(self, words: str) -> str:
        return readable(words, self._redactor, MAX_MESSAGE)

    async def elicit(
        self, context: Any, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """A question to a person, in the older protocol."""

        async def ask(caller: Caller) -> Any:
            return await caller.elicit(await self._clean(params))

        return await self._ask(self._flights.only(), ask)

    async def sample(self, context: Any, params: mcp_types.CreateMessageRequestParams) -> Any:
        """A question to the caller's model, in the older protocol."""

        async def ask(caller: Caller) -> Any:
            return await caller.sample(await self._clean(params))

        return await self._ask(self._flights.only(), ask)

    async def answers(
        self, requests: dict[str, mcp_types.InputRequest], flight: Flight
    ) -> dict[str, Any]:
        """Answer the questions that a result of the newer protocol brings.

        A caller that is a client itself gets them all at once, under the server's own keys; any
        other is asked one after the other.

        Raises:
            MCPError: one of them was declined.
        """
        if isinstance(flight.caller, ClientCaller):
            with flight.asking():
                asked = {key: await self._clean(request) for key, request in requests.items()}
                return await flight.caller.answers(asked)
        found: dict[str, Any] = {}
        for key, request in requests.items():
            answer = await self._ask(flight, self._asker(request))
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
        self, flight: Flight | None, ask: Callable[[Caller], Awaitable[Answer]]
    ) -> Answer | mcp_types.ErrorData:
        if flight is None or flight.caller is None:
            return _declined("it can't be said which caller this is for, so nobody is asked")
        if flight.questions >= MOST_QUESTIONS:
            return _declined("there were too many questions during this call")
        with flight.asking():
            try:
                return await ask(flight.caller)
            except Exception as error:
                self._log.note(f"its question could not be passed on: {type(error).__name__}")
                return _declined("the caller could not be asked")


def _declined(reason: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=reason)
