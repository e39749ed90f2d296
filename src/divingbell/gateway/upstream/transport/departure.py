"""The departure of a request: it is made ready while its record is written, then leaves."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from divingbell.errors import NotRecorded
from divingbell.journal.journal import Kept

_departing: "ContextVar[Departure | None]" = ContextVar("departing", default=None)


class Departure:
    """One request that waits for its record before it leaves."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.is_allowed = False
        """Whether it was waited for, and the record is kept."""
        self.is_held = False
        """Whether it wanted to leave, and has not."""

    async def allowed(self) -> None:
        """Return when it may leave.

        Raises:
            NotRecorded: it can't be recorded, and must not.
        """
        self.is_held = True
        await self._kept()
        self.is_held, self.is_allowed = False, True

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """Have the requests that this task sends in the block wait at the connection.

        Raises:
            NotRecorded: something came back, and nothing had waited.
        """
        token = _departing.set(self)
        try:
            yield
        finally:
            _departing.reset(token)
        if not self.is_allowed:
            raise NotRecorded("a request has left before it was recorded")


async def allowed() -> None:
    """Return when what this task sends may leave. Raises: as `Departure.allowed`."""
    departure = _departing.get()
    if departure is not None:
        await departure.allowed()
