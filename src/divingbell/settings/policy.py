"""The rules at the door: which calls pass, which are refused, and for which a person is asked.

All of it is decided on the host, for each call. What a server says about its own tools
(`readOnlyHint` and the like) has no part in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from divingbell.errors import ConfigError, ToolFailed
from divingbell.models import KB, MB, parse_size
from divingbell.settings import bindings, tables
from divingbell.settings.bindings import Binding
from divingbell.settings.rules import ACTIONS, Action, Rule, read_rules
from divingbell.shares import weight
from divingbell.tool import Tool
from divingbell_inside import frames

MAX_MESSAGE = frames.MAX_BODY - 64 * KB
"""Arguments and results travel in one frame each, with a little around them."""
MAX_KNOWN = 20_000
NOBODY = ""
"""The user of a session that has none, as rules see it."""
_SIZES = ("max_arguments", "max_result")
_RATES = ("rate_per_session", "rate_per_user")
_CHOICES = {"default": ACTIONS, "elicitation": ("ask", "decline"), "sampling": ("decline",)}


Audience = Literal["everyone", "some", "nobody"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to happen with a call, and why."""

    action: Action
    reason: str = ""
    rule: int | None = None
    """The number of the rule, counted from 1; None where no rule matched."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The `[policy]` table. Times are seconds, sizes are bytes."""

    default: Action = "allow"
    """What happens to a call that no rule matches: "allow", "deny" or "ask"."""
    calls_per_session: int = 10_000
    """Calls that a session may make; 0 for no limit."""
    calls_per_cell: int = 2_000
    """Calls that one cell may make; 0 for no limit."""
    calls_per_user: int = 0
    """Calls of all sessions of a user until Divingbell is started again; 0 for no limit."""
    rate_per_session: str = ""
    """Calls of a session in a time, such as "60/minute" or "5/second; 1000/hour"."""
    rate_per_user: str = ""
    """Calls of all sessions of a user in a time."""
    max_arguments: int = 1 * MB
    """Size of a call's arguments."""
    max_result: int = MAX_MESSAGE
    """Size of a call's result. More than 16MB is not possible."""
    calls_at_once: int = 100
    """Calls of a session that run at the same time; more of them wait."""
    tool_timeout: float = 60.0
    """Seconds that a call may take."""
    approval_timeout: float = 300.0
    """Seconds that a person has to answer; then it is a no."""
    elicitation: str = "ask"
    """Questions of servers: "ask" the person if there is one, or "decline"."""
    sampling: str = "decline"
    """Requests of servers to use the client's model: "decline"."""
    pin: bool = True
    """Definitions of tools are remembered, so that a change of one is noticed."""
    rules: tuple[Rule, ...] = ()
    """The first that matches decides."""
    bound: tuple[Binding, ...] = ()
    """Arguments that the host sets."""
    _known: dict[tuple[str, str], tuple[tuple[int, Rule], ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def from_mapping(cls, raw: Any, where: str) -> "Policy":
        """Read the table; `where` says in errors where it stands.

        Raises:
            ConfigError: a name or a value can't be used.
        """
        where = f"{where}, [policy]"
        given = tables.table(raw, where, (item.name for item in fields(cls) if item.init))
        return cls(**{name: _setting(name, value, where) for name, value in given.items()})

    def decide(
        self, tool: Tool, arguments: Mapping[str, Any], user: str, session: str = ""
    ) -> Decision:
        """Return what is to happen with a call. Give it the arguments that `bind` returned.

        Raises:
            ToolFailed: an argument can't be compared.
        """
        for number, rule in self._concerning(tool, user):
            if rule.fits(arguments):
                return Decision(rule.action, rule.reason, number)
        return Decision(self.default)

    def visible(self, tool: Tool, user: str) -> bool:
        """Return whether there may be arguments with which this user can call the tool."""
        for _, rule in self._concerning(tool, user):
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
        if weight.weight_of(arguments, weight.MAX_ARGUMENTS) > weight.MAX_ARGUMENTS:
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

    def _concerning(self, tool: Tool, user: str) -> tuple[tuple[int, Rule], ...]:
        """The rules about a tool and a user with their numbers, found once: calls are many."""
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


_DEFAULTS = Policy()


def _setting(name: str, value: Any, where: str) -> Any:
    if name == "rules":
        return read_rules(value, where)
    if name == "bound":
        return bindings.read_bindings(value, where)
    where, default = f"{where}: {name}", getattr(_DEFAULTS, name)
    if name in _CHOICES:
        return tables.choice(value, _CHOICES[name], where)
    if name in _SIZES:
        return _size(value, where)
    if name in _RATES:
        return _rate(value, where)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ConfigError(f"{where} is true or false, not {value!r}")
        return value
    if isinstance(default, float):
        return _seconds(value, where)
    return _number(value, 0 if name.startswith("calls_per_") else 1, where)


def _number(value: Any, least: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        words = "0 (no limit) or more" if least == 0 else f"{least} or more"
        raise ConfigError(f"{where} is a whole number, {words}, not {value!r}")
    return value


def _seconds(value: Any, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:
        raise ConfigError(f"{where} is a number of seconds, more than 0, not {value!r}")
    return float(value)


def _size(value: Any, where: str) -> int:
    try:
        size = parse_size(value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not 0 < size <= frames.MAX_BODY:
        raise ConfigError(f"{where} is more than 0 and at most 16MB, not {value!r}")
    return min(size, MAX_MESSAGE)


def _rate(value: Any, where: str) -> str:
    if value == "":
        return ""
    from limits import parse_many  # it takes a while to load, and few set a rate

    try:
        if not all(item.amount > 0 and item.get_expiry() > 0 for item in parse_many(value)):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f'{where} is a number in a time, such as "60/minute" or "5/second; 1000/hour", '
            f"not {value!r}"
        ) from None
    return cast(str, value)
