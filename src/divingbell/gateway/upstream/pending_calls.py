"""Calls that a server has not answered yet, and which of them a question of it belongs to."""

import asyncio
import contextlib
from collections.abc import Iterator

from divingbell.gateway.callers import Caller


class PendingCall:
    """A call without an answer yet. Its clock stands still while a person is asked."""

    def __init__(self, caller: Caller | None) -> None:
        self.caller = caller
        self.questions = 0
        """Questions during it so far."""
        self.undelivered = 0
        """Messages to the caller that it has not taken yet."""
        self.clock: asyncio.Timeout | None = None
        self._asking = 0
        self._left = 0.0

    @contextlib.contextmanager
    def delivering(self) -> Iterator[None]:
        """Count a message as undelivered for as long as the block lasts."""
        self.undelivered += 1
        try:
            yield
        finally:
            self.undelivered -= 1

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Stop the clock for the time of the block."""
        now = asyncio.get_running_loop().time
        clock = self.clock
        if self._asking == 0 and clock is not None and (end := clock.when()) is not None:
            self._left = end - now()
            clock.reschedule(None)
        self._asking += 1
        self.questions += 1
        try:
            yield
        finally:
            self._asking -= 1
            if self._asking == 0 and clock is not None and clock is self.clock:
                # The call may be over already, and its clock with it.
                with contextlib.suppress(RuntimeError):
                    clock.reschedule(now() + self._left)


class PendingCalls:
    """All calls over one connection that have no answer yet."""

    def __init__(self) -> None:
        self._calls: dict[int, PendingCall] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._calls)

    @contextlib.contextmanager
    def begin(self, caller: Caller | None) -> Iterator[PendingCall]:
        """Have a call among them for as long as the block lasts."""
        call = PendingCall(caller)
        self._next += 1
        key = self._next
        self._calls[key] = call
        try:
            yield call
        finally:
            del self._calls[key]
            call.clock = None

    def only(self) -> PendingCall | None:
        """Return the call that an unsolicited message belongs to, if there can be no doubt.

        In the older protocol a server's question names no call. With calls of two sessions on
        their way it could be shown to the wrong person, so it is shown to nobody.
        """
        found: PendingCall | None = None
        for call in self._calls.values():
            if call.caller is None:
                continue
            if found is not None and not _are_of_one_session(found.caller, call.caller):
                return None
            found = call
        return found


def _are_of_one_session(one: Caller | None, other: Caller | None) -> bool:
    if one is other:
        return True
    return (
        one is not None
        and other is not None
        and one.session is not None
        and one.session == other.session
    )
