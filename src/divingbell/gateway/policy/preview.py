"""Arguments of a call as a person reads them before saying yes.

The code chooses values, and often names and their order. None of that may move anything out of
sight: every name is shown, in the order of the tool's schema, and the room is shared between the
values. Short ones are shown whole; the long ones get equal parts of what is left, and say how long
they are.
"""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from divingbell.gateway.schema.members import members_of
from divingbell.text import visible

MAX_PREVIEW = 4000
MAX_SHOWN = 200
MAX_NAME_SHOWN = 200
LEAST = 60
"""Characters of a long value that are of any use: some of it, and how long it is."""
MAX_LEVELS = 3
"""Of objects and arrays whose parts share the room; further in the end is cut off."""
MAX_PARTS_SHOWN = 200
MAX_HIDDEN = 200
CUT = "…"
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_SECRET = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|pwd|authorization|credentials?|client_secret|"
    r"(?:api|secret|private|access|secret_access)_?key|"
    r"(?:api|access|auth|bearer|refresh|session|security)_?token)$|^(?:secret|token)$"
)
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def preview(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> str | None:
    """Return arguments one a line, with nothing invisible and no name left out.

    Values are JSON, so that no text can pass for another line. None if there are so many, or with
    such names, that nobody could read them.
    """
    if len(arguments) > MAX_SHOWN or max(map(len, arguments), default=0) > MAX_NAME_SHOWN:
        return None
    members = members_of(schema)
    listed = members.properties if members else {}
    names = [name for name in listed if name in arguments]
    names += [name for name in arguments if name not in listed]  # in the code's own order
    labels = [f"{label(name)}: " for name in names]
    values = [_Hidden.of(name, arguments[name], listed.get(name)) for name in names]
    shown = _shared(values, MAX_PREVIEW - sum(len(each) + 1 for each in labels), MAX_LEVELS)
    return None if shown is None else "\n".join(map(str.__add__, labels, shown))


def label(name: str) -> str:
    """Return a name as it is, or in quotes if it has more in it than names have."""
    return name if _PLAIN.fullmatch(name) else _quoted(name)


class _Hidden(str):
    """What stands in the place of a value that is not shown."""

    @classmethod
    def of(cls, name: str, value: Any, schema: Any) -> Any:
        """Return the value, or what stands for it if its schema or whole name says it is a secret.

        Only one that the server has declared: the code must not choose what a person can't see.
        And only what can be a secret: a path, an address or a sentence is shown.
        """
        if not isinstance(schema, Mapping) or not isinstance(value, str):
            return value
        words = _WORD_BREAK.sub("_", name).strip("_").lower()
        if schema.get("format") != "password" and not _SECRET.search(words):
            return value
        if len(value) > MAX_HIDDEN or re.search(r"[\s/\\]", value):
            return value
        return cls(f"••• ({len(value)} characters, a secret: not shown)")


def _shared(values: Sequence[Any], room: int, levels: int) -> list[str] | None:
    """Values as texts that fit into the room together; None if too little of each would be left."""
    texts = [visible(_written(value), MAX_PREVIEW) for value in values]
    left, share = room, 0
    for number, length in enumerate(sorted(map(len, texts))):
        share = left // (len(texts) - number)
        if length > share:
            break
        left -= length
    else:
        return texts
    if share < LEAST:
        return None
    return [
        text if len(text) <= share else _fitted(value, share, levels)
        for text, value in zip(texts, values, strict=True)
    ]


def _fitted(value: Any, room: int, levels: int) -> str:
    """A long value in little room, which its parts share, where it has some."""
    is_object = isinstance(value, Mapping)
    if levels and isinstance(value, Mapping | list | tuple) and len(value) <= MAX_PARTS_SHOWN:
        parts = [value[name] for name in value] if isinstance(value, Mapping) else list(value)
        labels = [f"{_quoted(str(name))}: " if is_object else "" for name in value]
        shown = _shared(parts, room - sum(len(each) + 2 for each in labels), levels - 1)
        if shown is not None:
            inner = ", ".join(map(str.__add__, labels, shown))
            return f"{{{inner}}}" if is_object else f"[{inner}]"
    return visible(_written(value), room)


def _written(value: Any) -> str:
    if isinstance(value, _Hidden):
        return value
    try:
        return json.dumps(_Shortened().copy(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "(can't be shown)"


def _quoted(name: str) -> str:
    return visible(json.dumps(name, ensure_ascii=False), MAX_PREVIEW)


class _Shortened:
    """Copies a value up to a number of parts: nobody reads more."""

    def __init__(self) -> None:
        self._left = MAX_PARTS_SHOWN

    def copy(self, value: Any) -> Any:
        self._left -= 1
        if isinstance(value, Mapping):
            made = {
                str(key): self.copy(inner)
                for key, inner in itertools.islice(value.items(), max(0, self._left))
            }
            return made | (
                {CUT: f"{missing:,} more"} if (missing := len(value) - len(made)) else {}
            )
        if isinstance(value, list | tuple):
            items = [self.copy(inner) for inner in itertools.islice(value, max(0, self._left))]
            missing = len(value) - len(items)
            return [*items, f"{CUT} {missing:,} more"] if missing else items
        return value
