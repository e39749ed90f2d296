"""Memory of the host that one session, or one user, may take at once with what it has under way."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar


class Allowance:
    """A number of bytes that all that is under way may take together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0


class Hold:
    """The part of an allowance that one call or request has taken; `close` gives it back."""

    def __init__(
        self, allowance: Allowance, charge: Callable[[float], object] = lambda _: None
    ) -> None:
        self._allowance = allowance
        self._size = 0
        self.charge = charge
        """Takes the seconds of processor time that reading the result took."""
        self.closed = False

    def grow(self, size: int) -> bool:
        """Take as much as makes this many bytes in all; return whether they were to be had.

        Who is alone may take more than there is: otherwise nobody could ever have it.
        """
        if self.closed or size <= self._size:  # what comes too late is thrown away at once
            return True
        others = self._allowance.held - self._size
        if others and others + size > self._allowance.most:
            return False
        self._allowance.held, self._size = others + size, size
        return True

    def close(self) -> None:
        self._allowance.held -= self._size
        self._size, self.closed = 0, True


RESULT: ContextVar[Hold | None] = ContextVar("result", default=None)
"""The hold that the result of the call in this context counts against."""


@contextlib.contextmanager
def counted(
    allowance: Allowance, charge: Callable[[float], object] = lambda _: None
) -> Iterator[Hold]:
    """Have results of calls that are made in the block count against an allowance until its end.

    `charge` gets the processor time that reading them takes.
    """
    hold = Hold(allowance, charge)
    token = RESULT.set(hold)
    try:
        yield hold
    finally:
        RESULT.reset(token)
        hold.close()
