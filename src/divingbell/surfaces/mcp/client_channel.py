"""The channel to the client of a call: questions to its person and its model, progress, log."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel

from divingbell import logs
from divingbell.principal import Principal
from divingbell.surfaces.mcp.callers import Context, is_modern
from divingbell.surfaces.mcp.definitions import NAME
from divingbell.surfaces.mcp.exits import APPROVAL, MAX_MESSAGE, Exits
from divingbell.text import visible

log = logs.logger("divingbell")

LEVELS: tuple[str, ...] = get_args(types.LoggingLevel)
DEFAULT_LEVEL: types.LoggingLevel = "info"
MAX_QUESTIONS = 64
"""Questions of one call that wait for an answer at once."""

KINDS: Mapping[str, tuple[type[Any], ...]] = {
    "elicitation/create": (types.ElicitResult,),
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "roots/list": (types.ListRootsResult,),
}
"""The answers that a question can have."""

Reply = TypeVar("Reply", bound=BaseModel)


class ClientChannel:
    """Speaks to the client of one call; in the newer era across the requests that it takes.

    There a server can't send requests: it answers the client's own with the questions, and gets
    the answers with the client's next one. `pending` holds what is to be asked.
    """

    def __init__(
        self,
        principal: Principal,
        level: types.LoggingLevel | None = None,
        given: Mapping[str, types.InputResponse] | None = None,
        exits: Exits | None = None,
    ) -> None:
        self.principal = principal
        self._exits = exits or Exits()
        self.given = given or {}
        """Answers that came with the first request, to questions that it knew would come."""
        self.missing: MCPError | None = None
        """The error that names a capability which the client would have to have."""
        self.able = types.ClientCapabilities()
        self.user = principal.user
        self.pending: dict[str, types.InputRequest] = {}
        self.asking = asyncio.Event()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._level = level
        self._ctx: Context | None = None

    def attach(self, ctx: Context | None) -> None:
        """Speak through this request from now on; None while there is none."""
        self._ctx = ctx
        if ctx is not None:
            self.able = ctx.session.client_capabilities or types.ClientCapabilities()

    # Messages
    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Pass on how far it is. Nothing is sent where the client has not asked for it."""
        if self._ctx is not None:
            shown = None if message is None else await self._exits.words(message, self.principal)
            await self._ctx.session.report_progress(progress, total, shown)

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass on a line of a log, where the client wants lines of that level."""
        if self._ctx is not None and self._wants(params.level):
            notification = types.LoggingMessageNotification(
                params=await self._exits.model(params, self.principal)
            )
            await self._ctx.session.send_notification(notification, self._ctx.request_id)

    def _wants(self, level: str) -> bool:
        assert self._ctx is not None
        least: Any = self._level
        if is_modern(self._ctx):
            least = (self._ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
            if least is None:
                return False
        least = DEFAULT_LEVEL if least not in LEVELS else least
        return LEVELS.index(level) >= LEVELS.index(least)

    # Questions
    @property
    def can_be_asked(self) -> bool:
        """Whether the client shows questions to a person."""
        return self.able.elicitation is not None

    async def elicit(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Ask the person; where the client can't, the answer is `decline`."""
        request = types.ElicitRequest(params=params)
        if not self._can(request):
            return types.ElicitResult(action="decline")
        return await self._ask(request, types.ElicitResult)

    async def approve(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Ask the person for an approval, who sees what is really sent."""
        request = types.ElicitRequest(params=params)
        if not self._can(request):
            return types.ElicitResult(action="decline")
        return await self._ask(request, types.ElicitResult, APPROVAL)

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Have the client's model write something."""
        request = types.CreateMessageRequest(params=params)
        if not self._can(request):
            self.missing = _needs_sampling()
            return self.missing.error
        if params.tools is not None:
            return await self._ask(request, types.CreateMessageResultWithTools)
        return await self._ask(request, types.CreateMessageResult)

    async def answers(
        self, requests: Mapping[str, types.InputRequest]
    ) -> dict[str, types.InputResponse]:
        """Answer the questions of an upstream server under its own keys, all at once.

        What the client has answered in advance is taken. Where the client can't be asked for
        something, a person declines and there are no roots.

        Raises:
            MCPError: the client has no model to be asked; kept as `missing` too.
        """
        found: dict[str, types.InputResponse] = {}
        to_ask: dict[str, types.InputRequest] = {}
        for key, request in requests.items():
            given = self.given.get(key)
            if isinstance(given, KINDS[request.method]):
                found[key] = await self._written(given)
            elif self._can(request):
                to_ask[key] = request
            elif isinstance(request, types.CreateMessageRequest):
                self.missing = _needs_sampling()
                raise self.missing
            elif isinstance(request, types.ElicitRequest):
                found[key] = types.ElicitResult(action="decline")
            else:
                found[key] = types.ListRootsResult(roots=[])
        return found | await self._ask_all(to_ask)

    def _can(self, request: types.InputRequest) -> bool:
        if isinstance(request, types.CreateMessageRequest):
            return self.able.sampling is not None
        if isinstance(request, types.ListRootsRequest):
            return self.able.roots is not None
        able = self.able.elicitation
        is_url = isinstance(request.params, types.ElicitRequestURLParams)
        return able is not None and (able.url is not None or not is_url)

    async def _ask(
        self, request: types.InputRequest, kind: type[Reply], prefix: str = NAME
    ) -> Reply:
        key = f"{prefix}-{next(self._numbers)}"
        answer = (await self._ask_all({key: request}))[key]
        if not isinstance(answer, kind):
            raise MCPError(types.INVALID_PARAMS, f"{request.method} has another kind of answer")
        return answer

    async def _ask_all(
        self, requests: Mapping[str, types.InputRequest]
    ) -> dict[str, types.InputResponse]:
        if any(visible(key, MAX_MESSAGE) != key for key in requests):
            raise MCPError(types.INVALID_PARAMS, "a question's name has hidden characters")
        requests = {
            key: await self._exits.question(key, request, self.principal)
            for key, request in requests.items()
        }
        ctx = self._ctx
        if ctx is not None and not is_modern(ctx):
            related = ServerMessageMetadata(related_request_id=ctx.request_id)
            return {
                key: await self._written(
                    await ctx.session.send_request(request, _kind(request), metadata=related)
                )
                for key, request in requests.items()
            }
        if len(self.pending) + len(requests) > MAX_QUESTIONS or not requests.keys().isdisjoint(
            self.pending
        ):
            raise MCPError(types.INVALID_REQUEST, "too many questions at once")
        loop = asyncio.get_running_loop()
        waiting = {key: loop.create_future() for key in requests}
        self._answers |= waiting
        self.pending |= requests
        if requests:
            self.asking.set()
        try:
            return {key: await self._written(await future) for key, future in waiting.items()}
        finally:
            for key in requests:
                self.pending.pop(key, None)
                self._answers.pop(key, None)
            self._settle()

    async def _written(self, answer: Any) -> Any:
        """Return an answer as the host takes it: what the client's model wrote crosses the
        border."""
        if isinstance(answer, types.ElicitResult | types.ListRootsResult):
            return answer
        return await self._exits.written(answer, self.principal)

    def answer(self, answers: Mapping[str, types.InputResponse] | None) -> None:
        """Take the client's answers to questions that wait; others are left alone."""
        for key, answer in (answers or {}).items():
            asked = self.pending.get(key)
            # An answer of another kind is none: the question is put again.
            if asked is not None and isinstance(answer, KINDS[asked.method]):
                self._answers[key].set_result(answer)
                del self.pending[key]
        self._settle()

    def _settle(self) -> None:
        if not self.pending:
            self.asking.clear()


def _kind(request: types.InputRequest) -> type[Any]:
    if isinstance(request, types.CreateMessageRequest) and request.params.tools is not None:
        return types.CreateMessageResultWithTools
    return KINDS[request.method][0]


def _needs_sampling() -> MCPError:
    missing = types.ClientCapabilities(sampling=types.SamplingCapability())
    data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=missing)
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "the server of this tool asks for the client's model: use a client that has sampling",
        data.model_dump(by_alias=True, mode="json", exclude_none=True),
    )
