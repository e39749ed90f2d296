"""`divingbell policy`: what the rules do about a call, in words and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from divingbell.errors import InvalidInput
from divingbell.escapes import one_line
from divingbell.gateway.functions.host_tools import HOST
from divingbell.settings import explanation
from divingbell.settings.config import Settings
from divingbell.settings.explanation import Explanation, FlowEffect
from divingbell.settings.flows import Flow
from divingbell.settings.rules import Rule
from divingbell.surfaces.cli import exit_status
from divingbell.tool import Tool

_DONE = {"allow": "allowed", "deny": "denied", "ask": "asked about"}
_OUTCOMES = {
    "allow": "the call is made",
    "deny": "the call is denied",
    "ask": "a person is asked",
    "depends": "it depends on the arguments (give some with --arguments)",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is asked about, as the command line has it."""

    name: str
    user: str = ""
    arguments: str | None = None
    after: tuple[str, ...] = ()


def explain(call: Call, settings: Settings, *, as_json: bool) -> int:
    """Print what happens with a call; the exit status is 1 if it is denied.

    Raises:
        InvalidInput: a name is none of a tool, or the arguments are no JSON object.
    """
    tool = _tool(call.name)
    for name in call.after:
        _tool(name)
    found = explanation.explain(
        settings.policy, tool, call.user, _arguments(call.arguments), call.after
    )
    is_known = tool.server in {HOST, *(server.name for server in settings.servers)}
    if as_json:
        print(json.dumps({**_as_json(found), "server_known": is_known}, indent=2))
    else:
        print("\n".join(one_line(line) for line in _lines(found, tool, is_known)))
    return exit_status.FAILED if found.action == "deny" else exit_status.OK


def _tool(name: str) -> Tool:
    server, dot, own = name.partition(".")
    if not (server and dot and own):
        raise InvalidInput(
            f"{name!r} is no tool: write its server and its name, such as github.create_issue"
        )
    return Tool(server, own, server, own)


def _arguments(text: str | None) -> dict[str, Any] | None:
    try:
        found = None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--arguments is no JSON: {error}") from None
    if not isinstance(found, dict | None):
        raise InvalidInput('--arguments is a JSON object, such as {"path": "/srv/x"}')
    return found


def _lines(found: Explanation, tool: Tool, is_known: bool) -> Iterator[str]:
    whose = f", called by {found.user}" if found.user else ""
    yield f"{found.tool}{whose}: {_OUTCOMES[found.action]}"
    if not is_known:
        yield f"  · these settings have no server {tool.server}"
    yield from (f"  · {line}" for line in _lines_of_rules(found))
    for name, value in found.bound.items():
        yield f"  · the host sets {name} = {json.dumps(value, ensure_ascii=False)}"
    yield from (f"  · {_effect_line(effect)}" for effect in found.flows)
    for number, flow in found.sets_off:
        done, when = _DONE[flow.action], "after it"
        if flow.kinds:
            when = f"with {flow.words} out of its results, whatever code does with them,"
        yield f"  · {when} {_listed(flow.targets)} is {done}, by flow rule {number}"


def _lines_of_rules(found: Explanation) -> Iterator[str]:
    for number, rule in found.rules:
        when = "".join(
            f", when {path} is {json.dumps(pattern, ensure_ascii=False)}"
            for path, pattern in rule.when.items()
        )
        decides = " ← this one decides" if number == found.rule else ""
        yield f"rule {number}: {_DONE[rule.action]}{when}{_because(rule)}{decides}"
    if found.reason and found.rule is None:
        yield found.reason
    elif found.rule is None:
        yield f"no {'other ' if found.rules else ''}rule matches: {_DONE[found.default]} by default"


def _effect_line(effect: FlowEffect) -> str:
    done, flow = _DONE[effect.flow.action], effect.flow
    if flow.kinds:
        return (
            f"flow rule {effect.number}: {done} with {flow.words} of {_listed(flow.sources)} in "
            f"the arguments, which code has as tokens{_because(flow)}"
        )
    words = f"flow rule {effect.number}: {done} once the conversation has called "
    now = f" ← it has called {', '.join(effect.after)}" if effect.after else ""
    return f"{words}{_listed(flow.sources)}{_because(flow)}{now}"


def _listed(patterns: tuple[str, ...]) -> str:
    wanted = [text for text in patterns if not text.startswith("!")] or ["*"]
    unwanted = [text[1:] for text in patterns if text.startswith("!")]
    without = f" (not {', '.join(unwanted)})" if unwanted else ""
    return f"{' or '.join(wanted)}{without}"


def _because(rule: Rule | Flow) -> str:
    return f" ({rule.reason})" if rule.reason else ""


def _as_json(found: Explanation) -> dict[str, Any]:
    return {
        "tool": found.tool,
        "user": found.user,
        "action": found.action,
        "rule": found.rule,
        "reason": found.reason,
        "default": found.default,
        "rules": [
            {
                "rule": number,
                "action": rule.action,
                "when": dict(rule.when),
                "reason": rule.reason,
            }
            for number, rule in found.rules
        ],
        "bound": dict(found.bound),
        "flows": [
            {**_flow_json(effect.number, effect.flow), "set_off_by": effect.after}
            for effect in found.flows
        ],
        "sets_off": [_flow_json(number, flow) for number, flow in found.sets_off],
    }


def _flow_json(number: int, flow: Flow) -> dict[str, Any]:
    return {
        "flow": number,
        "from": flow.sources,
        "to": flow.targets,
        "action": flow.action,
        "reason": flow.reason,
        "kinds": [word.lower() for word in flow.kinds or ()],
    }
