"""The person behind an agent, who is asked one thing at a time."""

import asyncio
from typing import TYPE_CHECKING

from divingbell.gateway.context import ApprovalAsker, Asker

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult


class OneByOne:
    """Asks a person; questions of the agent and of its helpers wait for each other."""

    def __init__(self, asker: Asker) -> None:
        self.person: object = getattr(asker, "person", asker)
        self._asker = asker
        self._turn = asyncio.Lock()

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        async with self._turn:
            return await self._asker.elicit(params)

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        ask = self._asker.approve if isinstance(self._asker, ApprovalAsker) else self._asker.elicit
        async with self._turn:
            return await ask(params)
