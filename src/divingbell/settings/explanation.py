"""Explanations: what the policy says about a call, and by which of its rules."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from divingbell.errors import ToolFailed
from divingbell.settings.flows import Flow
from divingbell.settings.policy import Decision, Policy
from divingbell.settings.rules import Rule
from divingbell.tool import Tool

SESSION = "{session}"
"""Stands for the name of a session, where none is meant."""
Outcome = Literal["allow", "deny", "ask", "depends"]


@dataclass(frozen=True, slots=True)
class FlowEffect:
    """A rule about flows that holds a tool back, and the calls after which it does."""

    number: int
    flow: Flow
    after: tuple[str, ...]
    """Those of the earlier calls that set it off; with none it does not hold."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happens with a call, and why."""

    tool: str
    user: str
    action: Outcome
    """depends: it is decided by arguments, which are not known."""
    rule: int | None
    """The number of the rule that decides; None where none matches, or it depends."""
    reason: str
    """Of that rule; or why the arguments are refused."""
    rules: tuple[tuple[int, Rule], ...]
    """The rules that are looked at, in their order, with their numbers."""
    default: str
    """What happens where none of them matches."""
    bound: Mapping[str, Any]
    """The arguments that the host sets."""
    flows: tuple[FlowEffect, ...]
    """The rules about flows that hold it back after other calls."""
    sets_off: tuple[tuple[int, Flow], ...]
    """The rules about flows that hold others back after it."""


def explain(
    policy: Policy,
    tool: Tool,
    user: str,
    arguments: Mapping[str, Any] | None = None,
    after: Collection[str] = (),
) -> Explanation:
    """Return what the policy says about a call; without arguments, about all calls of the tool.

    `after` are the earlier calls of the conversation, by `server.tool`.
    """
    rules = _until_one_decides(policy, tool, user)
    if arguments is None:
        decision = _by_rules(policy, rules)
    else:
        decision = _by_arguments(policy, tool, user, arguments)
    name, flows = tool.full_name, tuple(enumerate(policy.flow, 1))
    effects = tuple(
        # Of a rule about kinds of values nobody knows it who does not know the arguments.
        FlowEffect(number, flow, () if flow.kinds else tuple(filter(flow.starts_at, after)))
        for number, flow in flows
        if flow.leads_to(name) and flow.is_for(user)
    )
    return Explanation(
        name,
        user,
        _outcome("depends" if decision is None else decision.action, effects),
        None if decision is None else decision.rule,
        "" if decision is None else decision.reason,
        rules,
        policy.default,
        {
            binding.argument: binding.filled(tool, user, SESSION)
            for binding in policy.bound
            if binding.concerns(tool)
        },
        effects,
        tuple((number, flow) for number, flow in flows if flow.starts_at(name)),
    )


def _until_one_decides(policy: Policy, tool: Tool, user: str) -> tuple[tuple[int, Rule], ...]:
    """The rules about a tool, up to the first that does not look at arguments."""
    found = []
    for number, rule in policy.concerning(tool, user):
        found.append((number, rule))
        if not rule.when:
            break
    return tuple(found)


def _by_rules(policy: Policy, rules: tuple[tuple[int, Rule], ...]) -> Decision | None:
    """The decision that holds for all arguments; None where they matter."""
    last = Decision(policy.default)
    if rules and not rules[-1][1].when:
        number, rule = rules[-1]
        last = Decision(rule.action, rule.reason, number)
    return last if all(rule.action == last.action for _, rule in rules) else None


def _by_arguments(policy: Policy, tool: Tool, user: str, arguments: Mapping[str, Any]) -> Decision:
    try:
        return policy.decide(tool, policy.bind(tool, arguments, user, SESSION), user)
    except ToolFailed as refusal:
        return Decision("deny", str(refusal))


def _outcome(action: Outcome, effects: tuple[FlowEffect, ...]) -> Outcome:
    """What rules about flows leave of an action: they never allow more."""
    actions = {effect.flow.action for effect in effects if effect.after}
    if "deny" in actions or action == "deny":
        return "deny"
    return "ask" if "ask" in actions and action == "allow" else action
