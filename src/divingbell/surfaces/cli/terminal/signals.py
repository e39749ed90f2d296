"""Signals: the effect of Ctrl-C and SIGTERM on a command."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from divingbell.surfaces.cli import exit_status

if TYPE_CHECKING:
    from divingbell.session.base import SessionHandle

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Ctrl-C interrupts the cell that runs. A second one, or one while no cell runs, leaves;
    a third one does not even wait for the session to be closed."""

    def __init__(self) -> None:
        self.status: int | None = None
        """The exit status, once the command is to end."""
        self.session: SessionHandle | None = None
        """The session whose cell is to be interrupted."""
        self.leave_on_second = True
        """Whether a second Ctrl-C gives up on the cell, and on everything."""
        self.on_interrupt: Callable[[], None] | None = None
        """Called by Ctrl-C in the place of all that, while it is set."""
        self.on_second: Callable[[], object] | None = None
        """Called when the command is told again to end, while it is set."""
        self.on_exit: Callable[[], None] | None = None
        """Called where nothing else is waited for: puts the terminal in order."""
        self._interrupted_cell: int | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself does not hold them

    def listen(self) -> None:
        """Take the signals over; the prompt takes Ctrl-C for itself, and this takes it back."""
        self._loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in _ENDING:
            self._loop.add_signal_handler(number, self.leave, exit_status.TERMINATED)

    def leave(self, status: int) -> None:
        """End the command: the session is closed in an orderly way."""
        if self.status is not None:
            if self.on_second is not None:
                self.on_second()
            return
        self.status = status
        if self.session is not None:
            # Else the cell would be given time to react to an interrupt.
            closing = self._loop.create_task(self.session.close("the command was ended"))
            self._tasks.add(closing)
        if self._task is not None:
            self._task.cancel()

    def _interrupt(self) -> None:
        if self.status is not None:
            if self.on_exit is not None:
                self.on_exit()
            # Nothing is left behind: the sandbox ends when this process does.
            os._exit(exit_status.INTERRUPTED)
        if self.on_interrupt is not None:
            self.on_interrupt()
            return
        session = self.session
        if session is None or not session.busy:
            self.leave(exit_status.INTERRUPTED)
        elif self._interrupted_cell == session.cells:
            if self.leave_on_second:
                self.leave(exit_status.INTERRUPTED)
        else:
            self._interrupted_cell = session.cells
            interrupting = self._loop.create_task(_interrupt(session))
            self._tasks.add(interrupting)


async def _interrupt(session: "SessionHandle") -> None:
    await session.interrupt()


def run(command: Callable[[Signals], Coroutine[Any, Any, int]]) -> int:
    """Run a command to its end, or until it is told to leave; return its exit status."""

    async def main() -> int:
        signals = Signals()
        signals.listen()
        try:
            return await command(signals)
        except asyncio.CancelledError:
            if signals.status is None:
                raise
            return signals.status

    return asyncio.run(main())
