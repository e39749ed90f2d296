"""The border: passed outward by what leaves for a model, and inward by what a model wrote.

Sessions pass their code inward and what they show outward; the gateway's pipeline passes arguments
and results; `divingbell.surfaces.mcp.exits` passes all else that goes to a client. A value is a
text, JSON, or one of the types of `divingbell.models` that hold such: see `walk.Leaves`.

Definitions of tools, and what a search for tools finds, are documentation and do not pass. Nor does
what a program takes out itself: `Session.get`, and the content of `Session.files`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from divingbell.border.masked_values import MaskedValues
from divingbell.command import CommandEvent
from divingbell.models import Event
from divingbell.principal import Principal

Value = TypeVar("Value")
Shown = TypeVar("Shown", Event, CommandEvent)
Charge = Callable[[float], object]
Reader = Literal["model", "sandbox"]
"""A model, or the code in a sandbox, which computes with what it gets."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A value that stands for a token in what a model or code wrote: all but the value itself."""

    token: str
    kind: str
    origins: frozenset[str] = frozenset()
    """The tools that it came from, as `server.tool`."""


class Passage(Protocol):
    """The way out for the events of one run: texts come in pieces, and a value may be cut."""

    async def event(self, event: Shown) -> Iterable[Shown]:
        """Return what may be shown once this event has come; some of its text may have to wait."""

    async def end(self) -> Iterable[Any]:
        """Return what has waited. Nothing comes after it."""


class Reading(Protocol):
    """A file on its way into a session, which may tell what is personal."""

    def add(self, piece: bytes) -> None:
        """Take its next piece."""

    async def end(self) -> None:
        """Take it that this was all, before code can read it."""


class Border(Protocol):
    """Changes values on their way, or leaves them as they are."""

    async def inward(
        self, value: Value, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Value:
        """Return what a model of this principal wrote, as the host takes it.

        `to` is the server that gets it, where that is known. `written` is the JSON that the value
        was parsed from, where that is at hand: it may tell sooner that there is nothing to do.

        Raises:
            UnknownToken: it names something that this conversation does not have.
        """

    async def restored(
        self, value: object, principal: Principal, written: bytes | None = None
    ) -> tuple[Restored, ...]:
        """Return what `inward` would put into a value: rules about kinds of values ask for it.

        Raises:
            UnknownToken: it names something that this conversation does not have.
        """

    async def values_in(self, code: str, principal: Principal) -> Mapping[str, str]:
        """Return what stands in code for something else, and what for.

        It is put into the constants of the code, and never into its text, where a quote would
        become code.

        Raises:
            UnknownToken: it names something that this conversation does not have.
        """

    async def reveal(self, text: str, principal: Principal) -> tuple[str, int]:
        """Return a text with all values in it, for a person, and how many there are.

        What this conversation does not have stays as it is.

        Raises:
            UnknownToken: it can't be looked up now.
        """

    async def outward(
        self, value: Value, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Value:
        """Return a value as its reader may see it.

        `origin` is the tool that it comes from, as `server.tool`, where that is known. Some values
        pass more than one exit: what has passed once must pass again unchanged.
        """

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        """Return a text that is at hand as a model may see it; of one that goes on, what is certain
        of it: at its end may be half a value."""

    def passage(self, principal: Principal, charge: Charge) -> Passage:
        """Return the way out for the events of one run; `charge` gets the processor time."""

    def note(self, principal: Principal) -> str:
        """Return what the reader of a result has to be told of the border now, if anything."""

    def join(self, client: Principal, session: Principal) -> None:
        """Take note that a client reaches a session, which another of the user's has opened."""

    def hold(self, principal: Principal) -> Callable[[], None]:
        """Take note that a conversation goes on, until what is returned is called: a session is
        open, or a request is answered."""

    async def learn(self, given: object, principal: Principal, tool: str) -> None:
        """Take note of the arguments that a tool gets, with the values in them: what stands in
        their personal fields is found again. `tool` is its name, as `server.tool`."""

    def reading(self, name: str, principal: Principal) -> Reading:
        """Return what reads along when a program puts a file into a session."""

    def learns(self, principal: Principal) -> bool:
        """Whether it wants to know what the tables say that a session has in its hands."""

    async def learn_told(self, told: bytes, principal: Principal, charge: Charge) -> None:
        """Learn from what a session says of its tables: JSON of values by the names of columns.

        It may have more hidden for it, and never less."""

    def holds_back(self, principal: Principal, content: bytes = b"") -> bool:
        """Whether content that can't be looked through, such as an image, is held back."""


@runtime_checkable
class Masking(Protocol):
    """A border that counts what it hides."""

    masked: MaskedValues


class OpenPassage:
    """The way out of an open border."""

    async def event(self, event: Shown) -> Iterable[Shown]:
        return (event,)

    async def end(self) -> Iterable[Any]:
        return ()


class Unread:
    """A file that nobody reads along."""

    def add(self, piece: bytes) -> None:
        """Pass over it."""

    async def end(self) -> None:
        """Make nothing of it."""


class OpenBorder:
    """The border that changes nothing."""

    async def inward(
        self, value: Value, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Value:
        return value

    async def restored(
        self, value: object, principal: Principal, written: bytes | None = None
    ) -> tuple[Restored, ...]:
        return ()

    async def values_in(self, code: str, principal: Principal) -> Mapping[str, str]:
        return {}

    async def reveal(self, text: str, principal: Principal) -> tuple[str, int]:
        return text, 0

    async def outward(
        self, value: Value, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Value:
        return value

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        return text

    def passage(self, principal: Principal, charge: Charge) -> Passage:
        return OpenPassage()

    def note(self, principal: Principal) -> str:
        return ""

    def join(self, client: Principal, session: Principal) -> None:
        """Keep nothing of it."""

    def hold(self, principal: Principal) -> Callable[[], None]:
        return _nothing

    async def learn(self, given: object, principal: Principal, tool: str) -> None:
        """Make nothing of it."""

    def reading(self, name: str, principal: Principal) -> Reading:
        return Unread()

    def learns(self, principal: Principal) -> bool:
        return False

    async def learn_told(self, told: bytes, principal: Principal, charge: Charge) -> None:
        """Learn nothing from it."""

    def holds_back(self, principal: Principal, content: bytes = b"") -> bool:
        return False


def _nothing() -> None:
    pass
