"""Whether a call may pass: what the rules say, whether the arguments fit, what the person says.

Each step may refuse, and nothing is sent before all have passed:
bind → decide → check → compare the definition → ask.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from divingbell.calls import Visit
from divingbell.errors import ToolFailed
from divingbell.gateway import policy, schema, wrappers
from divingbell.gateway.approvals import Approval, Approvals, Approver, ElicitingApprover
from divingbell.gateway.catalog import Catalog
from divingbell.gateway.pins import Pins
from divingbell.gateway.policy import NOBODY, Decision, Policy
from divingbell.gateway.preview import preview
from divingbell.gateway.problem import Problem
from divingbell.gateway.tool import Tool
from divingbell.models import Event

log = logging.getLogger("divingbell.gateway")

MAX_PROBLEMS = 3


class Admission:
    """Lets calls pass, or refuses them."""

    def __init__(
        self, rules: Policy, catalog: Catalog, pins: Pins, on_approval: Approver | None
    ) -> None:
        self.pins = pins
        self.approvals = Approvals(rules.approval_timeout)
        self._policy = rules
        self._catalog = catalog
        self._on_approval = on_approval
        self._saving: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Remember what is to be remembered."""
        if self._saving is not None:
            await asyncio.wait([self._saving])
        if self.pins.unsaved:
            await asyncio.to_thread(self.pins.save)

    async def admit(self, tool: Tool, given: Mapping[str, Any], visit: Visit) -> dict[str, Any]:
        """Let a call of a tool pass; return its arguments with those that the host sets.

        Raises:
            ToolFailed: it may not pass.
        """
        arguments = self._policy.bind(tool, given, visit.user or NOBODY, visit.session)
        decision = self._decide(tool, arguments, visit)
        await self._check_arguments(tool, given, visit)
        await self._confirm(tool, arguments, decision, visit)
        return arguments

    async def admit_request(self, tool: Tool, given: Mapping[str, Any], visit: Visit) -> None:
        """Let a request pass that is none of a tool. Raises: as `admit`."""
        await self._confirm(tool, given, self._decide(tool, given, visit), visit)

    async def problems(self, tool: Tool, given: Mapping[str, Any], visit: Visit) -> list[Problem]:
        """What is wrong with the arguments that the code gives."""
        known = self._policy.without_bound(tool).input_schema or {}
        found = await schema.checked(given, known, visit.charge)
        return found or schema.unknown_names(given, known)

    def _decide(self, tool: Tool, arguments: Mapping[str, Any], visit: Visit) -> Decision:
        decision = self._policy.decide(tool, arguments, visit.user or NOBODY)
        if decision.action == "deny":
            raise policy.denied(tool, decision)
        return decision

    async def _check_arguments(self, tool: Tool, given: Mapping[str, Any], visit: Visit) -> None:
        problems = await self.problems(tool, given, visit)
        if problems:
            seen = self._policy.without_bound(tool)
            words = "; ".join(str(problem) for problem in problems[:MAX_PROBLEMS])
            raise ToolFailed(
                f"{tool.full_name}: {words}. It is called as {wrappers.signature(seen)}",
                "tool_arguments",
            )

    async def _confirm(
        self, tool: Tool, arguments: Mapping[str, Any], decision: Decision, visit: Visit
    ) -> None:
        """Ask the person, if the rules say so or the definition is another than it was."""
        must_ask = decision.action == "ask"
        reason = decision.reason
        if self._policy.pin:
            review = self.pins.review(tool, decision.action)
            if review == "warn":
                words = f"{tool.full_name}: its definition has changed since it was first seen"
                log.warning("%s", words)
                visit.tell(Event("log", text=words, tool=tool.full_name))
            elif review == "ask":
                must_ask = True
                reason = f"its definition has changed. {reason}".strip()
            self._save_pins()
        if must_ask:
            await self._approve(tool, arguments, reason, decision.rule, visit)

    async def _approve(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        reason: str,
        rule: int | None,
        visit: Visit,
    ) -> None:
        approver = ElicitingApprover(visit.asker) if visit.asker else self._on_approval
        shown = preview(arguments, tool.input_schema)
        if shown is None:
            raise ToolFailed(
                f"{tool.full_name} needs approval, and {len(arguments):,} arguments, or such long "
                "names, are more than a person can read: send fewer",
                "tool_denied",
            )
        question = Approval(
            tool=tool.full_name,
            arguments=shown,
            reason=reason,
            session=visit.key,
            user=visit.user or NOBODY,
            run=visit.run,
            rule=rule,
            definition=self.pins.digest(tool),
        )
        listed = self._catalog.lists(tool)
        await self.approvals.ask(question, approver)
        if listed and not self._catalog.lists(tool):
            raise ToolFailed(
                f"{tool.full_name} was changed by its server while the person was asked: "
                "look at it again, then call it again",
                "tool_denied",
            )
        self.pins.approve(tool)
        self._save_pins()

    def _save_pins(self) -> None:
        if self.pins.unsaved and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(asyncio.to_thread(self.pins.save))
