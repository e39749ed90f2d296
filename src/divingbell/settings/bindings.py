"""Arguments that the host sets: the code neither sets nor sees them."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from divingbell.errors import ConfigError, ToolFailed
from divingbell.settings import argument_names
from divingbell.settings.patterns import Pattern, pattern_text
from divingbell.settings.tables import Place, shown
from divingbell.tool import Tool

MAX_ARGUMENTS = 1000
"""Arguments of a call: the name of each is folded and compared with that of each binding."""
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS = ("user", "session")


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """One line of `[policy.bound]`."""

    tool: str
    """A pattern over `server.tool`."""
    argument: str
    value: Any
    """Text in which {user} and {session} are filled in, or any other value."""
    _tool: Pattern = dataclasses.field(init=False, repr=False, compare=False)
    _plain_argument: str = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tool", Pattern(self.tool))
        object.__setattr__(self, "_plain_argument", argument_names.plain(self.argument))

    def concerns(self, tool: Tool) -> bool:
        """Return whether the tool has this argument, as far as can be known."""
        return self.names(tool) and not self._is_missing(tool)

    def names(self, tool: Tool) -> bool:
        """Return whether the tool is one that is meant."""
        return self.is_for(tool.full_name)

    def is_for(self, name: str) -> bool:
        """Return whether a tool of this name, `server.tool`, is one that is meant."""
        return self._tool.matches(name)

    def check(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that the code must not set.

        Raises:
            ToolFailed: the code sets this one, or the tool no longer has it.
        """
        if len(arguments) > MAX_ARGUMENTS:
            raise ToolFailed(
                f"{tool.full_name} has no more than {MAX_ARGUMENTS:,} arguments",
                "tool_arguments",
            )
        if any(argument_names.means(name, self._plain_argument) for name in arguments):
            raise ToolFailed(
                f"{tool.full_name}: {self.argument} is set by the host: leave it out",
                "tool_denied",
            )
        if self._is_missing(tool) and self._is_exact:
            # The server may have given it another name, which the code could then set.
            raise ToolFailed(
                f"{tool.full_name} has no argument {self.argument} any more, to which the host "
                "binds a value: whoever runs Divingbell has to correct [policy.bound]",
                "tool_denied",
            )

    def filled(self, tool: Tool, user: str, session: str) -> Any:
        """Return the value for a call, as a number where the tool wants one."""
        if not isinstance(self.value, str):
            return self.value
        known = {"user": user, "session": session}
        # In one go: a user who is named {session} stays that.
        text = _PLACEHOLDER.sub(lambda found: known[found[1]], self.value)
        wanted = (_properties(tool) or {}).get(self.argument)
        is_number = isinstance(wanted, Mapping) and wanted.get("type") in ("integer", "number")
        return int(text) if is_number and re.fullmatch(r"-?[0-9]{1,18}", text) else text

    def hides(self, name: str) -> bool:
        """Return whether an argument of a schema is this one, in any spelling."""
        return len(name) <= argument_names.MAX_LENGTH and argument_names.means(
            name, self._plain_argument
        )

    @property
    def _is_exact(self) -> bool:
        return re.search(r"[*?\[]", self.tool) is None

    def _is_missing(self, tool: Tool) -> bool:
        known = _properties(tool)
        return bool(known) and self.argument not in (known or {})


def read_bindings(raw: Any, place: Place) -> tuple[Binding, ...]:
    """Read the table `bound`, which stands in the policy's.

    Raises:
        ConfigError: a name or a value can't be used.
    """
    place = place.inner("bound")
    if not isinstance(raw, Mapping):
        raise ConfigError(
            f'{place} must be a table, such as "crm.get_orders.user_id" = "{{user}}", '
            f"not {shown(raw)}"
        )
    return tuple(_binding(key, value, place) for key, value in raw.items())


def _binding(key: Any, value: Any, place: Place) -> Binding:
    try:
        tool, _, argument = pattern_text(key).rpartition(".")
    except ValueError as error:
        raise ConfigError(place.told(str(error))) from None
    if not argument or not all(tool.partition(".")) or key.startswith("!"):
        words = f'{shown(key)} must be "server.tool.argument", in quotes'
        raise ConfigError(place.told(words))
    for name in _PLACEHOLDER.findall(value) if isinstance(value, str) else ():
        if name not in _PLACEHOLDERS:
            raise ConfigError(
                place.told(f"{key}: {{{name[:80]}}} is unknown; there are {{user}} and {{session}}")
            )
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(place.told(f"{key} can't be {shown(value)}: it must be JSON")) from None
    return Binding(tool, argument, value)


def without(tool: Tool, bound: Iterable[Binding]) -> Tool:
    """Return the tool with the arguments that these bindings set gone from its schema."""
    bindings = tuple(bound)
    if not bindings or tool.input_schema is None:
        return tool
    return dataclasses.replace(tool, input_schema=_without(tool.input_schema, bindings))


def _without(
    schema: Mapping[str, Any], bindings: tuple[Binding, ...], levels: int = 1
) -> dict[str, Any]:
    def stays(name: object) -> bool:
        return not any(binding.hides(str(name)) for binding in bindings)

    made = dict(schema)
    if isinstance(properties := made.get("properties"), Mapping):
        made["properties"] = {name: value for name, value in properties.items() if stays(name)}
    if isinstance(required := made.get("required"), list | tuple):
        made["required"] = [name for name in required if stays(name)]
    # Servers write arguments there too. One level, since a hostile one would nest without end.
    for key in ("allOf", "anyOf", "oneOf") if levels else ():
        if isinstance(branches := made.get(key), list | tuple):
            made[key] = [
                _without(branch, bindings, levels - 1) if isinstance(branch, Mapping) else branch
                for branch in branches
            ]
    return made


def _properties(tool: Tool) -> Mapping[str, Any] | None:
    known = (tool.input_schema or {}).get("properties")
    return known if isinstance(known, Mapping) else None
