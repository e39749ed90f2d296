"""The interface of a backend. A session has a sandbox; it knows nothing about its walls."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from divingbell.models import Consumption, Isolation, Limits
from divingbell.settings.config import Settings


class Tether(Protocol):
    """A line to one interpreter, as far as the sandbox lays it (divingbell.session.tether)."""

    def hand_over(self) -> list[int]:
        """Return the descriptors for the other side; call `handed_over` once they are sent."""

    def handed_over(self, cell: int) -> None:
        """Close our copies of the other side's ends, and greet it."""


class Sandbox(ABC):
    """One sealed place with one interpreter in it."""

    isolation: Isolation
    limits: Limits
    """Those of the session. One that waited for its user has the user's from then on; the limits
    that it is sealed with are the same (`Limits.sealed_like`)."""

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
    def open_command(self, number: int) -> int:
        """Start a command server; return the descriptor of a socket to it.

        Raises:
            SandboxUnavailable: the sandbox is gone.
        """

    @abstractmethod
    def end_command(self, number: int) -> None:
        """End the command server of this number, and everyone in its session. Never raises."""

    @abstractmethod
    def consumption(self) -> Consumption:
        """Return what has been used so far."""

    def pids(self) -> list[int]:
        """Return the pids of those of its processes that the host sees."""
        return []

    @abstractmethod
    def give_way(self, to_all: bool) -> None:
        """Let all others have the processor first, or be like them again. Never raises.

        Where it can't be had nothing happens: it is a courtesy, and no limit.
        """

    def share(self, part: float) -> None:
        """Have this part of what a session has of processors that others want too. Never raises.

        Where it can't be had nothing happens, as with `give_way`.
        """
        return None

    @abstractmethod
    async def stop(self) -> None:
        """End every process and remove everything. Never raises, may be called again."""


class Zygote(Protocol):
    """The process that the sessions of a backend are cloned from."""

    @property
    def pid(self) -> int | None:
        """Its pid on the host, None while it does not run."""

    async def start(self) -> None:
        """Start it unless it runs."""


def _tell_nobody(line: str) -> None:
    """Drop a line of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRequest:
    """The settings and surroundings that a backend is made from."""

    name: str
    """Its name in the registry, which the `isolation` of its sandboxes gives."""
    settings: Settings
    progress: Callable[[str], None] = _tell_nobody
    """Hears what takes long, in one line each time."""
    servers: Path | None = None
    """A folder to show read-only at /servers: the wrappers of tools."""
    many: bool = True
    """Whether many sessions are to be made, and not one for a command that then ends."""


class Backend(ABC):
    """A maker of sandboxes. Its row in the registry names what makes it from a BackendRequest."""

    zygote: Zygote | None = None
    """What its sessions are cloned from, once it has started; None if each starts by itself."""

    @abstractmethod
    async def start(self) -> None:
        """Get ready.

        Raises:
            SandboxUnavailable: this machine can't do it; the message says what to do.
        """

    @abstractmethod
    async def create(self, limits: Limits) -> Sandbox:
        """Return a new sandbox that is not started yet.

        It enforces those of the limits that `models.SEALED_LIMITS` names; the host sees to the
        others.

        Raises:
            SandboxUnavailable: it could not be made.
        """

    @abstractmethod
    async def stop(self) -> None:
        """End what is left of it."""

    def abandon(self) -> None:
        """Remove what can be removed when the program ends without `stop`; no loop runs any more.

        What is left is removed by the next one that starts.
        """
        return None
