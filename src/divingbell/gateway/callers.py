"""Callers: those who hear of a call's progress, and are asked on its behalf.

A call is made by the code of a session, or by a client of ours whose request is passed through.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from divingbell import text
from divingbell.gateway.context import Asker, CallContext
from divingbell.gateway.signed_questions import signed
from divingbell.models import Event
from divingbell.settings.policy import Policy

if TYPE_CHECKING:
    # The SDK takes most of a second to load, and many have no servers.
    import mcp_types as types

MAX_TEXT = 2000


class Caller(Protocol):
    """A session, or a client of ours, as an upstream server reaches it during a call."""

    @property
    def session(self) -> str | None: ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def log(self, params: "types.LoggingMessageNotificationParams") -> None: ...

    async def elicit(
        self, params: "types.ElicitRequestParams"
    ) -> "types.ElicitResult | types.ErrorData": ...

    async def sample(
        self, params: "types.CreateMessageRequestParams"
    ) -> "types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData": ...


@runtime_checkable
class ClientCaller(Caller, Protocol):
    """A client of ours, to which questions of the newer protocol are passed on as they are."""

    async def answers(
        self, requests: "dict[str, types.InputRequest]"
    ) -> "dict[str, types.InputResponse]": ...


def question(
    policy: Policy, server: str, params: "types.ElicitRequestParams"
) -> "types.ElicitRequestParams | None":
    """Return a server's question as a person may see it; None if nobody is to be asked."""
    return signed(params, server) if policy.elicitation == "ask" else None


async def elicited(
    policy: Policy, server: str, params: "types.ElicitRequestParams", asker: Asker | None
) -> "types.ElicitResult":
    """Put a server's question to the person; without one, or without a word, it is declined."""
    from mcp_types import ElicitResult

    asked = None if asker is None else question(policy, server, params)
    if asker is None or asked is None:
        return ElicitResult(action="decline")
    try:
        async with asyncio.timeout(policy.approval_timeout):
            return await asker.elicit(asked)
    except TimeoutError:
        return ElicitResult(action="cancel")


class SessionCaller:
    """The code of a session: it is told by events, and its person may be asked."""

    def __init__(self, policy: Policy, context: CallContext, tool: str) -> None:
        self._policy = policy
        self._context = context
        self._tool = tool

    @property
    def session(self) -> str:
        # Not the id: two users may have sessions of the same id.
        return self._context.key

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._context.tell(
            Event(
                "progress",
                text=text.visible(message or "", MAX_TEXT),
                tool=self._tool,
                progress=progress,
                total=total,
            )
        )

    async def log(self, params: "types.LoggingMessageNotificationParams") -> None:
        data = (
            params.data
            if isinstance(params.data, str)
            else json.dumps(params.data, ensure_ascii=False)
        )
        words = text.visible(f"{params.level}: {data}", MAX_TEXT)
        self._context.tell(Event("log", text=words, tool=self._tool))

    async def elicit(self, params: "types.ElicitRequestParams") -> "types.ElicitResult":
        server = self._tool.partition(".")[0]
        return await elicited(self._policy, server, params, self._context.asker)

    async def sample(self, params: "types.CreateMessageRequestParams") -> "types.ErrorData":
        from mcp_types import ErrorData

        return ErrorData(code=-1, message="requests to the client's model are declined by policy")
