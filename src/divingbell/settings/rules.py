"""Rules about calls: by server and tool, by user, by what the arguments say."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from divingbell.errors import ToolFailed
from divingbell.settings import argument_names
from divingbell.settings.markers import Check, Described, one_or_more
from divingbell.settings.patterns import Pattern, Patterns, PatternText, PatternTexts
from divingbell.shares import weight
from divingbell.tool import Tool

Action = Literal["allow", "deny", "ask"]
MAX_RULES = 1000
"""Rules of a policy. For the first call of a tool by a user each is looked at."""
MAX_VALUES = 10_000
"""Values and names that one condition looks at."""
MAX_STEPS = 50
"""Names in the path of a condition. All ways to join them are kept: 500 took seconds, and 40 MB."""


def tool_pattern(text: str) -> str:
    """Return a pattern over `server.tool`.

    Raises:
        ValueError: it can't match any, because it names a server alone.
    """
    if isinstance(text, str) and not re.search(r"[.*]", text):
        raise ValueError(
            f'{text[:80]!r} is no tool: write "{text[:80]}.*" for all tools of a server'
        )
    return text


def argument_path(text: str) -> str:
    """Return the path of an argument.

    Raises:
        ValueError: it has more steps than arguments are deep.
    """
    if text.count(".") >= MAX_STEPS:
        raise ValueError(f"a path has at most {MAX_STEPS} names, with dots between them")
    return text


ToolPatterns = Annotated[
    tuple[Annotated[PatternText, tool_pattern], ...],
    one_or_more,
    Described('a list of patterns, such as ["github.*"]'),
    Check("", bool),
]


@dataclass(frozen=True, slots=True)
class Rule:
    """One `[[policy.rules]]`."""

    tools: ToolPatterns
    """Patterns over `server.tool`; `!` in front takes away."""
    action: Action
    """What happens: "allow", "deny" or "ask"."""
    reason: str = ""
    """Shown to the one who is refused and to the one who is asked."""
    users: PatternTexts = ("*",)
    """Patterns over the names of users."""
    when: Annotated[
        Mapping[Annotated[PatternText, argument_path], PatternText],
        Described('a table, such as { path = "/etc/*" }'),
    ] = field(default_factory=dict)
    """Patterns over arguments, all of which must match."""
    _tools: Patterns = field(init=False, repr=False, compare=False)
    _users: Patterns = field(init=False, repr=False, compare=False)
    _when: tuple["Condition", ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tools", Patterns(self.tools))
        object.__setattr__(self, "_users", Patterns(self.users))
        conditions = tuple(Condition(path, text) for path, text in self.when.items())
        object.__setattr__(self, "_when", conditions)

    @property
    def is_for_everyone(self) -> bool:
        return "*" in self.users and not any(user.startswith("!") for user in self.users)

    def names(self, tool: Tool) -> bool:
        """Return whether it is about this tool, for some user."""
        return self._tools.matches(tool.full_name)

    def concerns(self, tool: Tool, user: str) -> bool:
        """Return whether it is about this tool and user, whatever the arguments."""
        return self.names(tool) and self._users.matches(user)

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
        self._steps = [step.replace("[]", "") for step in path.split(".")]
        self._negated = pattern.startswith("!")
        self._pattern = Pattern(pattern.removeprefix("!"))
        last = len(self._steps)
        self._exact = [
            {".".join(self._steps[at:end]): end for end in range(at + 1, last + 1)}
            for at in range(last)
        ]
        """For each step: its name, or with dots that of several, and which step comes then."""
        self._names = [
            {argument_names.plain(name): end for name, end in names.items()}
            for names in self._exact
        ]

    def holds(self, arguments: Mapping[str, Any], *, careful: bool) -> bool:
        """Return whether it holds; where there are several values, on the side of caution.

        A rule that refuses or asks (`careful`) is meant if one value is of that kind, a rule
        that allows only if all are. Where there is no value it is not of the kind, but for a
        careful rule it may be anything else: `!` fits. Where the path goes on and the value does
        not, a server may still find the rest in it (SDKs parse text that is given for an object):
        a careful rule is meant, one that allows is not.

        Raises:
            ToolFailed: an argument can't be compared.
        """
        found = (self._fits(value, careful) for value in self._values(arguments))
        return any(found) if careful else all(found)

    def _fits(self, value: Any, careful: bool) -> bool:
        if value is _CLOSED:
            return careful
        if value is _MISSING:
            return careful and self._negated
        return self._pattern.matches(_compared_text(value)) != self._negated

    def _values(self, arguments: Mapping[str, Any]) -> Iterable[Any]:
        """All values that the path leads to.

        `_MISSING` stands for each place where it leads nowhere, `_CLOSED` for a value that it
        can't be followed into.
        """
        waiting: list[tuple[int, Any]] = [(0, arguments)]
        left = MAX_VALUES
        while waiting:
            step, value = waiting.pop()
            inner: list[tuple[int, Any]] = []
            if isinstance(value, list | tuple):
                left = _spent(left, len(value))
                inner = [(step, item) for item in value]
            elif step == len(self._steps):
                yield value
                if isinstance(value, str) and value.lstrip(_BLANK).startswith(("[", "{")):
                    # A server that wants an array, and gets text, may take it for one.
                    left = _spent(left, _cost(value, left))
                    waiting += ((step, read) for read in _read(value))
                continue
            elif isinstance(value, Mapping):
                left = _spent(left, len(value))
                inner = [(then, value[name]) for name in value if (then := self._next(name, step))]
                if self._exact[step].keys().isdisjoint(value):
                    # A strict server may not know the other spellings, and take its default.
                    inner.append((len(self._steps), _MISSING))
            elif value is not None:
                inner = [(len(self._steps), _CLOSED)]
            waiting += inner or [(len(self._steps), _MISSING)]

    def _next(self, name: str, step: int) -> int:
        """The step that comes after this name; 0 if the name is another one."""
        names = self._names[step]
        return names.get(argument_names.plain(name)) or names.get(
            argument_names.plain(argument_names.head(name)), 0
        )


_MISSING: Any = object()
_CLOSED: Any = object()
_BLANK = " \t\r\n\ufeff"


def _spent(left: int, number: int) -> int:
    """Take what is looked at from the budget: a megabyte of numbers would hold up everybody."""
    if number > left:
        raise ToolFailed(
            f"an argument that a rule looks at has more than {MAX_VALUES:,} items: "
            "send fewer at a time",
            "tool_arguments",
        )
    return left - number


def _cost(text: str, most: int) -> int:
    """The part of the budget that parsing takes. The length counts: texts may be in texts."""
    length = len(text) >> 10
    if length > most:
        return length
    return length + weight.weight_of(text.encode("utf-8", "surrogatepass"), most)


def _read(text: str) -> Iterable[Any]:
    """The value of a text that is JSON, as a list of one; an empty list if it is none."""
    try:
        return [json.loads(text.strip(_BLANK))]
    except json.JSONDecodeError:
        return []
    except (ValueError, RecursionError):
        raise _incomparable() from None


def _compared_text(value: Any) -> str:
    """The text of a value that patterns are compared with."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)  # else 1.0 would get past a rule about 1
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise _incomparable() from None


def _incomparable() -> ToolFailed:
    return ToolFailed(
        "an argument is nested too deep, is too long a number, or is no JSON", "tool_arguments"
    )
