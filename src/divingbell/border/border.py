"""The border: passed outward by what leaves for a model, and inward by what a model wrote.

Sessions pass their code inward and what they show outward; the gateway's pipeline passes arguments
and results; `divingbell.surfaces.mcp.exits` passes all else that goes to a client. A value is a
text, JSON, or one of the types of `divingbell.models` that hold such: see `walk.with_texts`.

Definitions of tools, and what a search for tools finds, are documentation and do not pass. Events
pass one by one as they come, so a word may be cut between two of them. The address of a file has
its name percent-encoded.
"""

from typing import Literal, Protocol, TypeVar

from divingbell.principal import Principal

Value = TypeVar("Value")
Reader = Literal["model", "sandbox"]
"""A model, or the code in a sandbox, which computes with what it gets."""


class Border(Protocol):
    """Changes values on their way, or leaves them as they are."""

    def inward(self, value: Value, principal: Principal) -> Value:
        """Return what a model of this principal wrote, as the host takes it."""

    def outward(self, value: Value, principal: Principal, reader: Reader = "model") -> Value:
        """Return a value as its reader may see it.

        Some values pass more than one exit: what has passed once must pass again unchanged.
        """


class OpenBorder:
    """The border that changes nothing."""

    def inward(self, value: Value, principal: Principal) -> Value:
        return value

    def outward(self, value: Value, principal: Principal, reader: Reader = "model") -> Value:
        return value
