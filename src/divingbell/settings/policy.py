"""The policy: which calls of tools pass, which are refused, and for which a person is asked.

All of it is decided on the host, for each call. What a server says about its own tools
(`readOnlyHint` and the like) has no part in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from divingbell.errors import ToolFailed
from divingbell.models import KB, MB, Size
from divingbell.settings import bindings, tables
from divingbell.settings.bindings import Binding
from divingbell.settings.flows import MAX_FLOWS, Flow
from divingbell.settings.markers import Check, Described, ReadBy, Seconds, at_least, at_most
from divingbell.settings.rules import MAX_RULES, Action, Rule
from divingbell.settings.tables import Place
from divingbell.shares import weight
from divingbell.tool import Tool
from divingbell_inside import frames

MAX_MESSAGE = frames.MAX_BODY - 64 * KB
"""Arguments and results travel in one frame each, with a little around them."""
MAX_KNOWN = 20_000
"""Pairs of a tool and a user whose rules are remembered; then all are found anew."""
MAX_RATE = 200
"""Characters of a rate, several of them together."""

Audience = Literal["everyone", "some", "nobody"]


def is_rate(text: str) -> bool:
    """Return whether a text is a number in a time; none is fine, too."""
    if not text or len(text) > MAX_RATE:
        return not text
    from limits import parse_many  # it takes a while to load, and few set a rate

    try:
        return all(item.amount > 0 and item.get_expiry() > 0 for item in parse_many(text))
    except ValueError:
        return False


Calls = Annotated[int, at_least(0, "0 (no limit) or more")]
Rate = Annotated[
    str,
    Described('a number in a time, such as "60/minute" or "5/second; 1000/hour"'),
    Check("", is_rate),
]
MessageSize = Annotated[
    Size,
    Described("a size"),
    Check("more than 0 and at most 16MB", lambda size: 0 < size <= frames.MAX_BODY),
]


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome for a call, and the reason."""

    action: Action
    reason: str = ""
    rule: int | None = None
    """The number of the rule, counted from 1; None where no rule matched."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The `[policy]` table. Times are seconds, sizes are bytes."""

    default: Action = "allow"
    """What happens to a call that no rule matches: "allow", "deny" or "ask"."""
    calls_per_session: Calls = 10_000
    """Calls that a session may make; 0 for no limit."""
    calls_per_cell: Calls = 2_000
    """Calls that one cell may make; 0 for no limit."""
    calls_per_user: Calls = 0
    """Calls of all sessions of a user until Divingbell is started again; 0 for no limit."""
    rate_per_session: Rate = ""
    """Calls of a session in a time, such as "60/minute" or "5/second; 1000/hour"."""
    rate_per_user: Rate = ""
    """Calls of all sessions of a user in a time."""
    execution_rate_per_user: Rate = ""
    """Cells and commands of all sessions of a user in a time, such as "60/minute"."""
    cpu_rate_per_user: Rate = ""
    """CPU seconds of all sessions of a user in a time, such as "120/minute"."""
    max_arguments: MessageSize = 1 * MB
    """Size of a call's arguments."""
    max_result: MessageSize = MAX_MESSAGE
    """Size of a call's result. More than 16MB is not possible."""
    calls_at_once: Annotated[int, at_least(1)] = 100
    """Calls of a session that run at the same time; more of them wait."""
    tool_timeout: Seconds = 60.0
    """Seconds that a call may take."""
    approval_timeout: Seconds = 300.0
    """Seconds that a person has to answer; then it is a no."""
    elicitation: Literal["ask", "decline"] = "ask"
    """Questions of servers: "ask" the person if there is one, or "decline"."""
    pin: bool = True
    """Definitions of tools are remembered, so that a change of one is noticed."""
    rules: Annotated[
        tuple[Rule, ...], at_most(MAX_RULES), Described("written as [[policy.rules]]")
    ] = ()
    """The first that matches decides."""
    bound: Annotated[tuple[Binding, ...], ReadBy(bindings.read_bindings)] = ()
    """Arguments that the host sets."""
    flow: Annotated[
        tuple[Flow, ...], at_most(MAX_FLOWS), Described("written as [[policy.flow]]")
    ] = ()
    """What may not be sent to some tools after others have returned something."""
    _known: dict[tuple[str, str], tuple[tuple[int, Rule], ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    GONE: ClassVar[Mapping[str, str]] = {
        "sampling": "a server that asks for the client's model during a call of the code is always "
        "declined, so leave it out"
    }

    def __post_init__(self) -> None:
        # What fills a frame leaves no room for what goes around it.
        for name in ("max_arguments", "max_result"):
            object.__setattr__(self, name, min(getattr(self, name), MAX_MESSAGE))

    @classmethod
    def from_mapping(cls, raw: Any, where: str) -> "Policy":
        """Read the table; `where` says in errors where it stands.

        Raises:
            ConfigError: a name or a value can't be used.
        """
        return tables.read(cls, raw, Place(where, "policy"))

    def decide(
        self, tool: Tool, arguments: Mapping[str, Any], user: str, session: str = ""
    ) -> Decision:
        """Return what is to happen with a call. Give it the arguments that `bind` returned.

        Raises:
            ToolFailed: an argument can't be compared.
        """
        for number, rule in self.concerning(tool, user):
            if rule.fits(arguments):
                return Decision(rule.action, rule.reason, number)
        return Decision(self.default)

    def visible(self, tool: Tool, user: str) -> bool:
        """Return whether there may be arguments with which this user can call the tool."""
        for _, rule in self.concerning(tool, user):
            if rule.action != "deny":
                return True
            if not rule.when:
                return False
        return self.default != "deny"

    def audience(self, tool: Tool) -> Audience:
        """Return who may call the tool with some arguments. In doubt it is "some"."""
        let_in = kept_out = False
        for rule in self.rules:
            if not rule.names(tool):
                continue
            if rule.action != "deny":
                let_in = True
            elif not rule.when:
                kept_out = True
            else:
                continue
            if rule.is_for_everyone:
                break
        else:
            let_in |= self.default != "deny"
            kept_out |= self.default == "deny"
        return "some" if let_in and kept_out else "everyone" if let_in else "nobody"

    def bind(
        self, tool: Tool, arguments: Mapping[str, Any], user: str, session: str
    ) -> dict[str, Any]:
        """Return the arguments together with those that the host sets.

        Raises:
            ToolFailed: the code sets one of them, or the tool no longer has it.
        """
        made = dict(arguments)
        for binding in self.bound:
            if binding.names(tool):
                binding.check(tool, arguments)
                if binding.concerns(tool):
                    made[binding.argument] = binding.filled(tool, user, session)
        return made

    def check_bound(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raise ToolFailed if these, which nothing is added to, have one that the host sets."""
        for binding in self.bound:
            if binding.names(tool):
                binding.check(tool, arguments)

    def bound_names(self, name: str) -> frozenset[str]:
        """Return the arguments that the host may set for a tool, by its name `server.tool`."""
        return frozenset(each.argument for each in self.bound if each.is_for(name))

    def without_bound(self, tool: Tool) -> Tool:
        """Return the tool as the code may see it: without the arguments that the host sets."""
        return bindings.without(tool, (each for each in self.bound if each.names(tool)))

    def check_arguments(self, name: str, arguments: bytes) -> None:
        """Raise ToolFailed if arguments are too large to be parsed; `name` is what is called."""
        if len(arguments) > self.max_arguments:
            raise ToolFailed(
                f"{name}: the arguments have {len(arguments):,} bytes, {self.max_arguments:,} are "
                "allowed (max_arguments in [policy]): send less at a time",
                "tool_limit",
            )
        if weight.are_too_heavy(arguments):
            raise ToolFailed(
                f"{name}: the arguments hold too many lists, objects and values: send fewer at a "
                "time, or send them as one text",
                "tool_limit",
            )

    def check_result_size(self, name: str, size: int) -> None:
        """Raise ToolFailed if a result of that many bytes is too large."""
        if size > self.max_result:
            raise ToolFailed(
                f"{name}: the result has {size:,} bytes, {self.max_result:,} are allowed "
                "(max_result in [policy]). The call was made: ask for less at a time",
                "tool_result",
            )

    def concerning(self, tool: Tool, user: str) -> tuple[tuple[int, Rule], ...]:
        """Return the rules about a tool and a user with their numbers, found once: calls are
        many."""
        key = (tool.full_name, user)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            rules = enumerate(self.rules, 1)
            found = self._known[key] = tuple(
                (number, rule) for number, rule in rules if rule.concerns(tool, user)
            )
        return found


def denied(tool: Tool, decision: Decision) -> ToolFailed:
    """Return the error for a call that a rule, or the lack of one, refuses."""
    without_words = "no rule allows it" if decision.rule is None else f"rule {decision.rule}"
    return ToolFailed(
        f"{tool.full_name} is denied by policy: {decision.reason or without_words}", "tool_denied"
    )
