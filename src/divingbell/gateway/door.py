"""A door to the gateway: what sessions have in its place that may do less, or find more.

Here everything passes. Those who make a door of their own change what they are about.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from divingbell.errors import ToolFailed
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.gateway import Gateway
from divingbell.shares import weight
from divingbell_inside import frames


class OpenDoor:
    """The gateway behind a door that is open (divingbell.session.calls.ToolGateway)."""

    def __init__(self, gateway: Gateway) -> None:
        self.calls_at_once = gateway.calls_at_once
        self._gateway = gateway

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer a call.

        Raises:
            ToolFailed: it was refused, or did not succeed.
        """
        return await self._gateway.answer(context, name, arguments)

    def generation(self, session: str) -> int:
        return self._gateway.generation(session)

    async def offer(self, session: str, functions: Sequence[HostFunction]) -> None:
        await self._gateway.offer(session, functions)

    def received(self, session: str, user: str, source: str) -> None:
        self._gateway.received(session, user, source)

    def cost(self, arguments: bytes) -> int:
        return self._gateway.cost(arguments)

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        await self._gateway.approve_code(context, findings, kinds)

    def end_run(self, session: str) -> None:
        self._gateway.end_run(session)

    async def forget(self, session: str) -> None:
        await self._gateway.forget(session)

    @property
    def has_servers(self) -> bool:
        return self._gateway.has_servers

    def fetching(self, user: str) -> list[str]:
        return self._gateway.fetching(user)

    def signature_of(self, name: str, user: str) -> str | None:
        return self._gateway.signature_of(name, user)


async def parsed(name: str, arguments: bytes) -> Mapping[str, Any]:
    """Return arguments that come as strict JSON.

    Raises:
        ToolFailed: they are something else.
    """
    try:
        return await weight.in_thread(lambda: frames.parse(arguments))
    except frames.FrameError as error:
        raise ToolFailed(f"{name}: the arguments: {error}", "tool_arguments") from None
