"""The doors of sessions in which an example runs: what their code asks is answered there."""

from collections.abc import Callable, Mapping
from typing import Any

from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.door import OpenDoor, parsed
from divingbell.gateway.gateway import Gateway
from divingbell.skills.answers import loaded
from divingbell.skills.skill import Skill


class Door(OpenDoor):
    """The gateway, with one skill that code can import (divingbell.session.calls.ToolGateway)."""

    def __init__(
        self,
        gateway: Gateway,
        skill: Skill,
        loading: Callable[[CallContext], None] = lambda context: None,
    ) -> None:
        """`loading` is told of the import, before anything of the skill comes in."""
        super().__init__(gateway)
        self.called: set[str] = set()
        """The tools that the example has called."""
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
        return await super().answer(context, name, arguments)

    def _is_ours(self, given: Mapping[str, Any]) -> bool:
        return given.get("name") in (self._skill.module, self._skill.name)
