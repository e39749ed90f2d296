"""The code of a session, as an upstream server sees it."""

import asyncio
import json
from typing import TYPE_CHECKING

from divingbell.calls import Visit
from divingbell.gateway import text
from divingbell.gateway.policy import Policy
from divingbell.gateway.signature import signed
from divingbell.models import Event

if TYPE_CHECKING:
    import mcp_types

MAX_TEXT = 2000


class Behind:
    """See `divingbell.gateway.caller.Caller`."""

    def __init__(self, policy: Policy, visit: Visit, tool: str) -> None:
        self._policy = policy
        self._visit = visit
        self._tool = tool

    @property
    def session(self) -> str:
        # Not the id: two users may have sessions of the same id.
        return self._visit.key

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._visit.tell(
            Event(
                "progress",
                text=text.visible(message or "", MAX_TEXT),
                tool=self._tool,
                progress=progress,
                total=total,
            )
        )

    async def log(self, params: "mcp_types.LoggingMessageNotificationParams") -> None:
        data = (
            params.data
            if isinstance(params.data, str)
            else json.dumps(params.data, ensure_ascii=False)
        )
        words = text.visible(f"{params.level}: {data}", MAX_TEXT)
        self._visit.tell(Event("log", text=words, tool=self._tool))

    async def elicit(
        self, params: "mcp_types.ElicitRequestParams"
    ) -> "mcp_types.ElicitResult | mcp_types.ErrorData":
        from mcp_types import ElicitResult

        question = signed(params, self._tool.partition(".")[0])
        if self._policy.elicitation != "ask" or self._visit.asker is None or question is None:
            return ElicitResult(action="decline")
        try:
            async with asyncio.timeout(self._policy.approval_timeout):
                answer: ElicitResult = await self._visit.asker.elicit(question)
                return answer
        except TimeoutError:
            return ElicitResult(action="cancel")

    async def sample(self, params: "mcp_types.CreateMessageRequestParams") -> "mcp_types.ErrorData":
        from mcp_types import ErrorData

        return ErrorData(code=-1, message="requests to the client's model are declined by policy")
