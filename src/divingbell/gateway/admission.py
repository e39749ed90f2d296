"""Whether a call may pass: what the rules say, whether the arguments fit, what the person says.

Each step may refuse, and nothing is sent before all have passed:
bind → decide → check → compare the definition → ask.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from divingbell.errors import ToolFailed
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import Catalog
from divingbell.gateway.context import CallContext
from divingbell.gateway.policy.approval_form import ElicitingApprover
from divingbell.gateway.policy.approvals import Approval, Approvals, Approver
from divingbell.gateway.policy.pins import Pins
from divingbell.gateway.policy.preview import preview
from divingbell.gateway.schema import check
from divingbell.gateway.schema.problem import Problem
from divingbell.models import Event
from divingbell.settings import policy
from divingbell.settings.policy import Decision, Policy
from divingbell.tool import Tool

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

    async def admit(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Let a call of a tool pass; return its arguments with those that the host sets.

        Raises:
            ToolFailed: it may not pass.
        """
        arguments = self._policy.bind(tool, given, context.user, context.session)
        decision = self._decide(tool, arguments, context)
        await self._check_arguments(tool, given, context)
        await self._confirm(tool, arguments, decision, context)
        return arguments

    async def admit_request(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext
    ) -> None:
        """Let a request pass that is none of a tool. Raises: as `admit`."""
        await self._confirm(tool, given, self._decide(tool, given, context), context)

    async def problems(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext
    ) -> list[Problem]:
        """What is wrong with the arguments that the code gives."""
        known = self._policy.without_bound(tool).input_schema or {}
        found = await check.checked(given, known, context.charge)
        return found or check.unknown_names(given, known)

    def _decide(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> Decision:
        decision = self._policy.decide(tool, arguments, context.user)
        if decision.action == "deny":
            raise policy.denied(tool, decision)
        return decision

    async def _check_arguments(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext
    ) -> None:
        problems = await self.problems(tool, given, context)
        if problems:
            seen = self._policy.without_bound(tool)
            words = "; ".join(str(problem) for problem in problems[:MAX_PROBLEMS])
            raise ToolFailed(
                f"{tool.full_name}: {words}. It is called as {wrappers.signature(seen)}",
                "tool_arguments",
            )

    async def _confirm(
        self, tool: Tool, arguments: Mapping[str, Any], decision: Decision, context: CallContext
    ) -> None:
        """Ask the person, if the rules say so or the definition is another than it was."""
        must_ask = decision.action == "ask"
        reason = decision.reason
        if self._policy.pin:
            review = self.pins.review(tool, decision.action)
            if review == "warn":
                words = f"{tool.full_name}: its definition has changed since it was first seen"
                log.warning("%s", words)
                context.tell(Event("log", text=words, tool=tool.full_name))
            elif review == "ask":
                must_ask = True
                reason = f"its definition has changed. {reason}".strip()
            self._save_pins()
        if must_ask:
            await self._approve(tool, arguments, reason, decision.rule, context)

    async def _approve(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        reason: str,
        rule: int | None,
        context: CallContext,
    ) -> None:
        approver = ElicitingApprover(context.asker) if context.asker else self._on_approval
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
            session=context.key,
            user=context.user,
            run=context.run,
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
