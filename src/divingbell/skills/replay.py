"""The door of a sandbox in which an example is tried: it replays, and nothing goes to a server.

Calls are answered as those of the session were that saves the skill, by tool and arguments. What
is personal in them has tokens in its place, as far as `privacy` hides it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from divingbell.border.border import Border
from divingbell.errors import ToolFailed
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.door import parsed
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.gateway import Gateway
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.skills.answers import loaded
from divingbell.skills.door import Door
from divingbell.skills.recordings import Recorded
from divingbell.skills.skill import Skill

MAX_NAME = 200
MAX_SHOWN = 200
"""Characters of arguments that a message shows."""


class ReplayDoor(Door):
    """Answers what the code of one trial asks."""

    def __init__(
        self,
        gateway: Gateway,
        border: Border,
        saver: CallContext,
        skill: Skill,
        recorded: Sequence[Recorded],
    ) -> None:
        super().__init__(gateway, skill)
        self._border = border
        self._saver = saver
        self._recorded = recorded
        self._answers: Mapping[tuple[str, bytes], Recorded] | None = None
        self.has_hidden = False
        """Whether an answer had tokens in place of what is hidden."""

    @property
    def principal(self) -> Principal:
        return self._saver.principal

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer a call as it was answered before.

        Raises:
            ToolFailed: a budget is used up, or no such call was made.
        """
        saver = self._saver
        await self._gateway.pipeline.meter.reserve(saver.key, saver.user, saver.run)
        self._gateway.policy.check_arguments(name[:MAX_NAME], arguments)
        if name == "load_skill":
            return await self._load(await parsed(name, arguments))
        if name == "await_server":
            given = await parsed(name, arguments)
            server = self._gateway.catalog.check_server(str(given.get("server")))
            tool = given.get("tool")
            return self._gateway.discovery.told(
                self._saver, server, None if tool is None else str(tool)
            )
        return await self._replayed(name, arguments)

    async def _load(self, given: Mapping[str, Any]) -> Answer:
        if not self._is_ours(given):
            raise ToolFailed(
                "while an example is tried, other skills can't be imported: put what it needs of "
                "them into the code",
                "tool_unknown",
            )
        return await loaded(self._skill, files=given.get("files") is True)

    async def _replayed(self, name: str, arguments: bytes) -> Answer:
        tool = self._gateway.host.find(name, self._saver.key) or self._gateway.catalog.known(name)
        known = name if tool is None else tool.full_name
        if tool is not None:
            self.called.add(known)
        if self._answers is None:
            self._answers = {
                (each.name, await self._canonical(each.arguments)): each for each in self._recorded
            }
        found = self._answers.get((known, await self._canonical(arguments)))
        if found is None:
            shown = (await self._border.outward(arguments.decode(), self.principal))[:MAX_SHOWN]
            raise ToolFailed(
                f"{known[:MAX_NAME]} was not called in this session with {shown}, and an example "
                "is tried without servers: call it so once and save the skill again, or choose an "
                "example with a call that was made",
                "tool_unavailable",
            )
        value = await weight.in_thread(lambda: json.loads(found.answer))
        shown = await self._border.outward(value, self.principal, "model", known)
        body, is_hidden = await weight.beside(
            lambda given: (json.dumps(given).encode(), given != value), shown
        )
        self.has_hidden |= is_hidden
        return Answer(body, found.kind)

    async def _canonical(self, arguments: bytes) -> bytes:
        """Return arguments in one form, with tokens for what is hidden: an example has those."""
        given = await parsed("the example", arguments)
        hidden = await self._border.outward(given, self.principal)
        return await weight.beside(_written, hidden)

    # The rest of the door

    def generation(self, session: str) -> int:
        return self._gateway.generation(self._saver.key)

    async def offer(self, session: str, functions: Sequence[HostFunction]) -> None:
        """Offer nothing: what the session had is answered as it was."""

    def received(self, session: str, user: str, source: str) -> None:
        """Take note of nothing: nothing leaves from here."""

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        await self._gateway.approve_code(self._saver, findings, kinds)

    def end_run(self, session: str) -> None:
        """Let go of nothing: budgets are counted for the session that saves."""

    async def forget(self, session: str) -> None:
        """Forget nothing: the session that saves goes on."""


def _written(given: Mapping[str, Any]) -> bytes:
    return json.dumps(given, sort_keys=True, separators=(",", ":")).encode()
