"""A conversation as the model is told it: what was asked, replied, and answered to its calls.

Entries are never changed once a model has read them, so that each request begins with the bytes of
the one before, and the caches of providers hold.
"""

from dataclasses import dataclass, field
from typing import Any, TypeGuard


@dataclass(frozen=True, slots=True)
class Image:
    """An image that a model is shown."""

    type: str
    """Its MIME type."""
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """Words of the person, or of the agent in the person's place."""

    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that a model has written."""

    id: str
    name: str
    arguments: str
    """As JSON, which may not be valid."""


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply of a model: text, calls of tools, or both."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    native: Any = field(default=None, repr=False)
    """The reply as its provider wants it back, as plain data; None where it was interrupted."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call."""

    call: Call
    text: str
    images: tuple[Image, ...] = ()


Entry = Asked | Replied | Answered

OUTPUT = "Output:\n"
"""How output begins for a model that calls no tools: it is told in the person's place."""


def is_output(entry: Entry) -> TypeGuard[Asked | Answered]:
    """Whether an entry is what came of a call, and no words of the person or the model."""
    if isinstance(entry, Asked):
        return entry.text.startswith(OUTPUT)
    return isinstance(entry, Answered)
