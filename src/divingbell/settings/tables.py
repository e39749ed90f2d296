"""Reads tables of the settings: strict about names, helpful about mistakes."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from divingbell.errors import ConfigError
from divingbell.settings.patterns import Pattern


def table(raw: Any, where: str, known: Iterable[str]) -> Mapping[str, Any]:
    """Return the table if it is one and has no names but the known ones.

    Raises:
        ConfigError: it is something else, or has another name.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} must be a table")
    names = list(known)
    for key in raw:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(names)}"
            raise ConfigError(f"{where}: there is no setting {key!r}{hint}")
    return raw


def choice(value: Any, known: tuple[str, ...], where: str) -> Any:
    """Return the value if it is one of the known words.

    Raises:
        ConfigError: it is another.
    """
    if value not in known:
        words = " or ".join(f'"{word}"' for word in known)
        raise ConfigError(f"{where} is {words}, not {value!r}")
    return value


def pattern(value: Any, where: str) -> str:
    """Return the value if it is a pattern, perhaps with `!` in front.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(value, str) or not value.removeprefix("!"):
        raise ConfigError(f"{where}: {value!r} is no pattern: write text, with * for anything")
    try:
        Pattern(value.removeprefix("!"))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    return value


def patterns(value: Any, where: str) -> tuple[str, ...]:
    """Return one or more patterns.

    Raises:
        ConfigError: there are none, or one is none.
    """
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts:
        raise ConfigError(f'{where} is a list of patterns, such as ["github.*"]')
    return tuple(pattern(text, where) for text in texts)
