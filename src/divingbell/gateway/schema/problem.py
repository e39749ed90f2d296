"""Problems of a value with its schema, in words for whoever wrote the code."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from divingbell.text import one_line

MAX_ANSWERS = 100
"""Names among which a likely one is looked for: the comparison is slow."""

Place = tuple[Any, str | int] | None
"""A place in the value: the place above it, and the name or number below that."""

_ENGLISH = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a bool",
    "object": "a dict",
    "array": "a list",
    "null": "None",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (`labels[2].name`), and what."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the value'} {self.message}"


def path_of(place: Place) -> str:
    """Return a place as code would write it: `labels[2].name`."""
    pieces: list[str] = []
    while place is not None:
        place, key = place
        if isinstance(key, int):
            pieces.append(f"[{key}]")
        elif key.isidentifier():
            pieces.append(f".{one_line(key, 80)}")
        else:
            pieces.append(f"[{in_short(key)}]")
    return "".join(reversed(pieces)).removeprefix(".")


def unknown(name: str, known: Mapping[str, Any]) -> str:
    """Return the message for a name that is none of these."""
    return f"is not a name that is known here{likely(name, list(known)[:MAX_ANSWERS])}"


def likely(wrong: str, known: list[str]) -> str:
    """Return a hint at the name that was probably meant, or nothing."""
    same = _without_separators(wrong[:64])
    for name in known:
        if len(name) <= 64 and _without_separators(name) == same:
            return f" (did you mean {in_short(name)}?)"
    short = [name for name in known if len(name) <= 64]
    close = difflib.get_close_matches(wrong[:64], short, 1, 0.7)
    return f" (did you mean {in_short(close[0])}?)" if close else ""


def _without_separators(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def kinds_in_words(kinds: Any) -> str:
    """Return the types of JSON Schema as Python has them: "a list or None"."""
    several = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(_ENGLISH.get(kind, "something else") for kind in several[:7])


def kind_of(value: Any) -> str:
    """Return the name of a value's type."""
    return "None" if value is None else type(value).__name__


def in_short(value: Any) -> str:
    """Return a value as a message shows it: in one line, cut."""
    if isinstance(value, str):
        return repr(one_line(value, 80)).replace("\\\\", "\\")
    if isinstance(value, Mapping | list | tuple):
        return f"a {kind_of(value)} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of many digits"
    return one_line(repr(value), 80)
