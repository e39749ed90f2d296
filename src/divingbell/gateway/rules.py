"""Rules about calls: by server and tool, by user, by what the arguments say."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from divingbell.errors import ConfigError, ToolFailed
from divingbell.gateway import reading
from divingbell.gateway.patterns import Pattern, Patterns
from divingbell.gateway.tool import Tool

Action = Literal["allow", "deny", "ask"]
ACTIONS: tuple[Action, ...] = get_args(Action)
MAX_RULES = 1000
MAX_VALUES = 10_000
"""Values that one condition looks at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `[[policy.rules]]`."""

    tools: tuple[str, ...]
    """Patterns over `server.tool`; `!` in front takes away."""
    action: Action
    """What happens: "allow", "deny" or "ask"."""
    reason: str = ""
    """Shown to the one who is refused and to the one who is asked."""
    users: tuple[str, ...] = ("*",)
    """Patterns over the names of users."""
    when: Mapping[str, str] = field(default_factory=dict)
    """Patterns over arguments, all of which must match."""
    _tools: Patterns = field(init=False, repr=False, compare=False)
    _users: Patterns = field(init=False, repr=False, compare=False)
    _when: tuple["Condition", ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tools", Patterns(self.tools))
        object.__setattr__(self, "_users", Patterns(self.users))
        conditions = tuple(Condition(path, text) for path, text in self.when.items())
        object.__setattr__(self, "_when", conditions)

    @classmethod
    def from_mapping(cls, raw: Any, where: str) -> "Rule":
        """Read one rule; `where` says in errors where it stands.

        Raises:
            ConfigError: a name or a value can't be used.
        """
        given = reading.table(raw, where, (item.name for item in fields(cls) if item.init))
        for name in ("tools", "action"):
            if name not in given:
                raise ConfigError(f"{where} has no {name!r}")
        tools = reading.patterns(given["tools"], f"{where}: tools")
        for text in tools:
            if not re.search(r"[.*]", text):
                raise ConfigError(
                    f'{where}: {text!r} is no tool: write "{text}.*" for all tools of a server'
                )
        reason, when = given.get("reason", ""), given.get("when", {})
        if not isinstance(reason, str):
            raise ConfigError(f"{where}: reason is text, not {reason!r}")
        if not isinstance(when, Mapping):
            raise ConfigError(f'{where}: when is a table, such as {{ path = "/etc/*" }}')
        return cls(
            tools=tools,
            action=reading.choice(given["action"], ACTIONS, f"{where}: action"),
            reason=reason,
            users=reading.patterns(given.get("users", ["*"]), f"{where}: users"),
            when={
                path: reading.pattern(text, f"{where}: when {path}") for path, text in when.items()
            },
        )

    def concerns(self, tool: Tool, user: str) -> bool:
        """Return whether it is about this tool and user, whatever the arguments."""
        return self._tools.matches(tool.full_name) and self._users.matches(user)

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether all its conditions hold for the arguments.

        Raises:
            ToolFailed: an argument can't be compared.
        """
        careful = self.action != "allow"
        return all(condition.holds(arguments, careful=careful) for condition in self._when)


class Condition:
    """A pattern for one argument, which a dotted path names."""

    def __init__(self, path: str, pattern: str) -> None:
        self._path = path
        self._steps = path.replace("[]", "").split(".")
        self._negated = pattern.startswith("!")
        self._pattern = Pattern(pattern.removeprefix("!"))

    def holds(self, arguments: Mapping[str, Any], *, careful: bool) -> bool:
        """Return whether it holds; where there are several values, on the side of caution.

        A rule that refuses or asks (`careful`) is meant if one value is of that kind, a rule
        that allows only if all are. A missing argument is of no kind.
        """
        found = [self._pattern.matches(text) != self._negated for text in self._texts(arguments)]
        if careful:
            return any(found) if found else self._negated
        return bool(found) and all(found)

    def _texts(self, arguments: Mapping[str, Any]) -> list[str]:
        values: list[Any] = [arguments]
        for step in self._steps:
            inner = (value for value in _each(values) if isinstance(value, Mapping))
            values = [value[step] for value in inner if step in value]
        if len(self._steps) > 1 and self._path in arguments:  # a name with a dot in it
            values.append(arguments[self._path])
        return [_text(value) for value in _each(values)]


def read_rules(raw: Any, where: str) -> tuple[Rule, ...]:
    """Read all rules.

    Raises:
        ConfigError: one of them can't be used.
    """
    if not isinstance(raw, list | tuple) or len(raw) > MAX_RULES:
        raise ConfigError(
            f"{where}: rules are written as [[policy.rules]], {MAX_RULES:,} at the most"
        )
    return tuple(
        Rule.from_mapping(rule, f"{where}, rule {number}") for number, rule in enumerate(raw, 1)
    )


def _each(values: Iterable[Any]) -> Iterable[Any]:
    """The values, with the items in place of each array, however deep."""
    waiting, seen = list(values)[::-1], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if isinstance(value, list | tuple):
            waiting.extend(reversed(value))
        else:
            yield value
        if len(waiting) + seen > MAX_VALUES:
            # A megabyte of small numbers would hold up everybody else for seconds.
            raise ToolFailed(
                f"an argument that a rule looks at has more than {MAX_VALUES:,} items: "
                "send fewer at a time",
                "tool_arguments",
            )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)  # else 1.0 would get past a rule about 1
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise ToolFailed(
            "an argument is nested too deep, is too long a number, or is no JSON", "tool_arguments"
        ) from None
