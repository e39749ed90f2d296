"""What a backend must offer. A session has a sandbox; it knows nothing about its walls."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from divingbell.models import Consumption, Isolation, Limits


class Tether(Protocol):
    """A line to one interpreter, as far as the sandbox lays it (divingbell.session.tether)."""

    def hand_over(self) -> list[int]:
        """The descriptors for the other side; call `handed_over` once they are sent."""

    def handed_over(self, cell: int) -> None:
        """Close our copies of the other side's ends, and greet it."""


class Sandbox(ABC):
    """One sealed place with one interpreter in it."""

    isolation: Isolation
    limits: Limits

    on_ended: Callable[[int], None]
    """Called when the interpreter has ended by itself, with its wait status."""
    on_gone: Callable[[str], None]
    """Called when the whole sandbox is gone, with the reason."""

    @abstractmethod
    async def start(self, tether: Tether, cell: int) -> None:
        """Seal the sandbox and start an interpreter on the other end of the tether.

        Raises:
            SandboxUnavailable: it could not be sealed.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Ask the interpreter to stop what it is doing, as Ctrl-C would."""

    @abstractmethod
    async def interrupted(self) -> None:
        """Return once every interrupt has been delivered: a late one would hit the next cell."""

    @abstractmethod
    async def replace(self, tether: Tether, cell: int, *, fresh: bool) -> bool:
        """End everything that runs and start anew on this tether.

        Returns:
            Whether the waiting copy took over (else the interpreter is a fresh one).

        Raises:
            SandboxUnavailable: the sandbox itself is gone.
        """

    @abstractmethod
    def open_files(self) -> int:
        """Start a file server; return the descriptor of a socket to it."""

    @abstractmethod
    def consumption(self) -> Consumption:
        """What has been used so far."""

    @abstractmethod
    def give_way(self, to_all: bool) -> None:
        """Let all others have the processor first, or be like them again. Never raises.

        Where it can't be had nothing happens: it is a courtesy, and no limit.
        """

    @abstractmethod
    async def stop(self) -> None:
        """End every process and remove everything. Never raises, may be called again."""


class Backend(ABC):
    """Makes sandboxes."""

    @abstractmethod
    async def start(self) -> None:
        """Get ready.

        Raises:
            SandboxUnavailable: this machine can't do it; the message says what to do.
        """

    @abstractmethod
    async def create(self, limits: Limits) -> Sandbox:
        """Return a new sandbox that is not started yet.

        Raises:
            SandboxUnavailable: it could not be made.
        """

    @abstractmethod
    async def stop(self) -> None:
        """End what is left of it."""
