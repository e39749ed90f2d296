"""Variables of the environment in the entries of servers: `${NAME}` and `${NAME:-default}`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from divingbell.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(?P<kind>[A-Za-z]+:(?!-))?(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}")


class Unusable(ConfigError):
    """One entry can't be used here and now, though nothing in it is misspelt."""


def expanded(value: Any, environment: Mapping[str, str], at: str, used: dict[str, str]) -> Any:
    """Return a value with its variables filled in; `used` gets those of the environment.

    Raises:
        Unusable: one is not set, or is something that only another client knows.
    """
    if isinstance(value, Mapping):
        return {key: expanded(item, environment, at, used) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [expanded(item, environment, at, used) for item in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        name, kind = found["name"], found["kind"]
        if kind not in (None, "env:"):
            raise Unusable(
                f"{at}: {found[0]} is something that another client asks for; "
                "put the value into a variable of the environment and write ${VARIABLE}"
            )
        if name in environment:
            used[name] = environment[name]
            return environment[name]
        if found["default"] is not None:
            return found["default"]
        raise Unusable(f"{at}: the variable {name} is not set in the environment")

    return _VARIABLE.sub(replaced, value)


def names_in(value: Any) -> Iterator[str]:
    """Yield the names of the variables that a value asks for."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from names_in(item)
    elif isinstance(value, str):
        yield from (found["name"] for found in _VARIABLE.finditer(value))
