"""The options of a session: the environment of its code, its labels, how long it may be idle."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from divingbell.errors import InvalidInput

MAX_NAME = 512
"""Characters of the id of a session, and of the name of a user."""
MAX_LABELS = 32
MAX_LABEL = 64
MAX_LABEL_VALUE = 256
MAX_VARIABLES = 256
"""Variables of the environment that a session is opened with."""
MAX_ENVIRONMENT = 64 << 10
"""Bytes of all of them. Linux gives a program 128 KB for each, and 2 MB for all with its
arguments."""
SHOWN = 80
"""Characters of a name that an error quotes."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Each of these begins a new line somewhere, does something to a terminal, or is no character.
_NO_NAME = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that a session is opened with, checked; see `checked`."""

    env: Mapping[str, str] = field(default_factory=_nothing, repr=False)
    """Not shown: people put tokens there."""
    labels: Mapping[str, str] = field(default_factory=_nothing)
    idle_timeout: float | None = None
    """Seconds; None for the setting, infinite for a session that never ends by being idle."""

    def other_than(self, opened: "SessionOptions") -> list[str]:
        """Return the names of those that are given here and are others there."""
        given = {"env": self.env, "labels": self.labels, "idle_timeout": self.idle_timeout}
        return [name for name, value in given.items() if value and value != getattr(opened, name)]


def checked(
    env: Mapping[str, str] | None,
    labels: Mapping[str, str] | None,
    idle_timeout: float | None,
) -> SessionOptions:
    """Return the options, as copies that nobody changes any more.

    Raises:
        InvalidInput: one of them can't be used.
    """
    return SessionOptions(
        MappingProxyType(_environment({} if env is None else env)),
        MappingProxyType(checked_labels({} if labels is None else labels)),
        _seconds(idle_timeout),
    )


def check_name(what: str, value: object) -> None:
    """Check the id of a session or the name of a user; None is one that is left out.

    Raises:
        InvalidInput: it can't be one.
    """
    if value is None:
        return
    if not isinstance(value, str):
        # To a dict 1, 1.0 and True are one key: three users would share a session.
        raise InvalidInput(
            f"the {what} of a session must be a str or None, not {type(value).__name__}: "
            f"write {what}=str(...)"
        )
    if not value:
        raise InvalidInput(f"the {what} of a session is empty: leave it out if there is none")
    if len(value) > MAX_NAME:
        raise InvalidInput(
            f"the {what} of a session may have {MAX_NAME} characters, not {len(value):,}: "
            "give a hash of it"
        )
    if _NO_NAME.search(value):
        raise InvalidInput(
            f"the {what} of a session is text without line breaks and control characters, "
            f"not {value[:SHOWN]!r}"
        )


def checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the labels.

    Raises:
        InvalidInput: they are no mapping from text to text, or too many or too long.
    """
    _check_mapping("labels", labels, MAX_LABELS)
    for name, value in labels.items():
        _check_label("the name of a label", name, MAX_LABEL)
        _check_label(f"the label {name!r}", value, MAX_LABEL_VALUE)
        if not name:
            raise InvalidInput("labels: a label must have a name")
    return dict(labels)


def _check_label(what: str, text: object, most: int) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"labels: {what} must be a str, not {type(text).__name__}")
    if len(text) > most or _NO_NAME.search(text):
        raise InvalidInput(
            f"labels: {what} may have {most} characters, without line breaks and control "
            f"characters, not {text[:SHOWN]!r}"
        )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the variables. No message has a value in it."""
    _check_mapping("env", env, MAX_VARIABLES)
    size = sum(_size_of_variable(name, value) for name, value in env.items())
    if size > MAX_ENVIRONMENT:
        raise InvalidInput(
            f"env: all names and values have {size:,} bytes, {MAX_ENVIRONMENT:,} are allowed: "
            "put what is large into a file with session.files.put()"
        )
    return dict(env)


def _size_of_variable(name: object, value: object) -> int:
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        shown = repr(name[:SHOWN]) if isinstance(name, str) else f"a {type(name).__name__}"
        raise InvalidInput(
            f"env: {shown} can't be the name of a variable: use letters, digits and _"
        )
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InvalidInput(f"env: the value of {name[:SHOWN]} must be a str, not {kind}")
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"env: the value of {name[:SHOWN]} is not valid text") from None
    if b"\0" in encoded:
        raise InvalidInput(f"env: the value of {name[:SHOWN]} has a NUL character in it")
    return len(name) + len(encoded)


def _check_mapping(what: str, given: Any, most: int) -> None:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} must be a dict of texts, not {type(given).__name__}")
    if len(given) > most:
        raise InvalidInput(f"{what}: {most} are allowed, not {len(given):,}")


def _seconds(idle_timeout: object) -> float | None:
    if idle_timeout is None:
        return None
    if isinstance(idle_timeout, int | float) and not isinstance(idle_timeout, bool):
        if idle_timeout > 0:  # which NaN is not
            return idle_timeout
        shown = f"{idle_timeout:g}"
    else:
        shown = f"a {type(idle_timeout).__name__}"
    raise InvalidInput(
        f"idle_timeout must be more than 0 seconds, or math.inf for never, not {shown}"
    )
