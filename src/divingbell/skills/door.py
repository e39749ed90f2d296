"""The doors of sessions in which an example runs: what their code asks is answered there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from divingbell.errors import ToolFailed
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.gateway import Gateway
from divingbell.shares import weight
from divingbell.skills.answers import loaded
from divingbell.skills.skill import Skill
from divingbell_inside import frames


class Door:
    """The gateway, with one skill that code can import (divingbell.session.calls.ToolGateway)."""

    def __init__(
        self,
        gateway: Gateway,
        skill: Skill,
        loading: Callable[[CallContext], None] = lambda context: None,
    ) -> None:
        """`loading` is told of the import, before anything of the skill comes in."""
        self.calls_at_once = gateway.calls_at_once
        self.called: set[str] = set()
        """The tools that the example has called."""
        self._gateway = gateway
        self._skill = skill
        self._loading = loading

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer a call: of the one skill, or as the gateway does.

        Raises:
            ToolFailed: it was refused, or did not succeed.
        """
        if name == "load_skill":
            self._gateway.policy.check_arguments(name, arguments)
            given = await parsed(name, arguments)
            if self._is_ours(given):
                self._loading(context)
                return await loaded(self._skill, files=given.get("files") is True)
        elif (tool := self._gateway.catalog.known(name)) is not None:
            self.called.add(tool.full_name)
        return await self._gateway.answer(context, name, arguments)

    def _is_ours(self, given: Mapping[str, Any]) -> bool:
        return given.get("name") in (self._skill.module, self._skill.name)

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
