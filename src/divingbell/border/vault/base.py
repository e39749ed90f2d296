"""The interface of a store: where sealed values are kept, and for how long."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from divingbell.errors import ConfigError


class VaultUnavailable(ConfigError):
    """Raised where a vault can't be kept in its place."""


class StoreFailed(Exception):
    """Raised by a store that can't be reached or written to; its words say why."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sealed value in its place."""

    conversation: str
    """A name that tells nothing of the user (divingbell.border.vault.seal)."""
    token: str
    sealed: bytes

    @property
    def place(self) -> str:
        """The place that the value is sealed for."""
        return f"{self.conversation} {self.token}"


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store holds."""

    conversations: int
    values: dict[str, int]
    """By kind."""


class Store(ABC):
    """Keeps rows until their conversation has not been used for `keep` seconds."""

    @abstractmethod
    async def open(self, check: bytes) -> bytes:
        """Get ready; keep the check if there is none yet, and return the one that is kept.

        Raises:
            StoreFailed: it can't be used.
        """

    @abstractmethod
    async def put(self, rows: Sequence[Row]) -> list[Row]:
        """Keep rows in places that are free; return those that stand in the places of the others.

        Their conversations are in use now. Raises: StoreFailed.
        """

    @abstractmethod
    async def replace(self, rows: Sequence[Row]) -> None:
        """Keep rows whatever stands in their places. Raises: StoreFailed."""

    @abstractmethod
    async def get(self, conversation: str, tokens: Iterable[str]) -> list[Row]:
        """Return the rows of these tokens that there are. Raises: StoreFailed."""

    @abstractmethod
    async def all_of(self, conversation: str, most: int) -> list[Row]:
        """Return the rows of a conversation, no more than `most`. Raises: StoreFailed."""

    @abstractmethod
    async def anywhere(self, tokens: Iterable[str]) -> list[Row]:
        """Return the rows of these tokens in all conversations. Raises: StoreFailed."""

    @abstractmethod
    async def used(self, conversations: Iterable[str]) -> None:
        """Note that these are in use, and forget those that have not been. Raises: StoreFailed."""

    @abstractmethod
    async def counts(self) -> Counts:
        """Return how much there is. Raises: StoreFailed."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it. Never raises."""
