"""Copies of interpreters that wait to take over after an accident: which cell each of them keeps,
and whose turn it is to get one.

A copy costs twenty times as much processor time as a small cell. So they are made one at a time,
each followed by a rest that is many times as long as it took, and never at the cost of cells. Where
many sessions want one, each gets it more rarely: that is what keeps them cheap.
"""

import asyncio
import contextlib
import time

from divingbell import logs
from divingbell.session.intake import field_of
from divingbell.session.interpreter import Interpreter
from divingbell.shares import processors
from divingbell_inside import frames

log = logs.logger("divingbell")

REST = 60.0
"""Times as long as the copy took, until the next one, divided by the number of processors: all
copies together take a sixtieth of the machine. Measured: a copy takes 11 ms of processor time, so
with two processors that is three in a second."""
LONGEST_REST = 1.0
PATIENCE = 1.0
"""Seconds for an interpreter to make a copy of itself. The others wait meanwhile."""
PRESSURE = 0.5
"""No copy is made when the session holds more than this part of its memory."""


class Copy:
    """The copy of one session's interpreter that waits, and the one that should."""

    def __init__(self, copies: "Copies") -> None:
        self.cell: int | None = None
        """The cell whose state is kept, where a copy waits."""
        self.refused: str | None = None
        """The reason why the last copy that was asked for was not made."""
        self.due: float | None = None
        """The time from which it can be asked for; None while a cell runs."""
        self._copies = copies
        self._changed = False
        """Whether variables may be others than those that the copy has."""
        self._interpreter: Interpreter | None = None
        self._cells = 0
        self._asked_for: int | None = None
        self._answered: asyncio.Future[None] | None = None

    def plan(self, interpreter: Interpreter, cells: int, *, changed: bool) -> None:
        """Ask for a copy after the last of so many cells, when it is this session's turn."""
        self._interpreter, self._cells = interpreter, cells
        self._changed |= changed
        if self._changed and self._asked_for is None and self._copies.after > 0:
            self.due = time.monotonic() + self._copies.after
            self._copies.want(self)

    def hold(self) -> None:
        """Ask for no copy, as a cell is about to run; one that is being made is not put off."""
        self.due = None
        if self._asked_for is not None and self._interpreter is not None:
            self._interpreter.sandbox.give_way(False)

    def close(self) -> None:
        """Want no copy any more."""
        self.due = None
        self._copies.forget(self)
        self._settle()

    def use_up(self) -> int | None:
        """Return the cell whose state the copy had, if there was one, and count it as used.

        The interpreter is replaced, and whoever takes over has no copy yet.
        """
        cell, self.cell = self.cell, None
        self._asked_for = None
        self._changed = cell is not None
        self._settle()
        return cell

    async def make(self) -> None:
        """Ask the interpreter for a copy of itself; return when it has answered, or has not."""
        self.due = None
        interpreter = self._interpreter
        if interpreter is None or not interpreter.alive or _is_pressed(interpreter):
            return
        self._asked_for = self._cells
        self._answered = asyncio.get_running_loop().create_future()
        interpreter.sandbox.give_way(True)
        try:
            interpreter.send({"op": "copy"})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._answered
        finally:
            interpreter.sandbox.give_way(False)

    def answered(self, header: frames.Header) -> None:
        """Take the interpreter's word about the copy: perhaps too late, perhaps unasked."""
        if self._asked_for is None:
            return
        self.refused = field_of(header, "reason", str)
        if self.refused is None:
            self.cell, self._changed = self._asked_for, False
            self._copies.made += 1
        self._asked_for = None
        self._settle()

    def _settle(self) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)


def _is_pressed(interpreter: Interpreter) -> bool:
    sandbox = interpreter.sandbox
    held = sandbox.consumption().memory
    return held is not None and held > sandbox.limits.memory * PRESSURE


def rest_after(took: float) -> float:
    """Return the seconds in which no copy is made. On a busy machine each copy takes longer, and
    so does this."""
    return min(took * REST / processors.count(), LONGEST_REST)


class Copies:
    """The sessions that want a copy, those first that have wanted one for longest."""

    def __init__(self, after: float) -> None:
        self.after = after
        """Idle seconds after a cell before a copy is made; 0 for none."""
        self.made = 0
        """How many were made since the start."""
        self._wanted: dict[Copy, None] = {}
        self._some = asyncio.Event()
        self._making: asyncio.Task[None] | None = None

    def want(self, copy: Copy) -> None:
        """Put it last in the row, unless it stands there already."""
        self._wanted.setdefault(copy)
        self._some.set()
        if self._making is None:
            self._making = asyncio.create_task(self._make())

    def forget(self, copy: Copy) -> None:
        self._wanted.pop(copy, None)

    async def stop(self) -> None:
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait([self._making])

    async def _make(self) -> None:
        while True:
            await self._some.wait()
            if (wait := self._until_one_is_due()) is None:
                self._some.clear()  # all of them run cells, and come back
            elif wait > 0:
                await asyncio.sleep(wait)
            else:
                await processors.until_one_is_free()
                began = time.monotonic()
                await self._make_one()
                await asyncio.sleep(rest_after(time.monotonic() - began))

    def _until_one_is_due(self) -> float | None:
        due = [copy.due for copy in self._wanted if copy.due is not None]
        return min(due) - time.monotonic() if due else None

    async def _make_one(self) -> None:
        now = time.monotonic()
        for copy in self._wanted:
            if copy.due is not None and copy.due <= now:
                del self._wanted[copy]
                try:
                    await copy.make()
                except Exception:  # one that goes wrong must not keep the others from theirs
                    log.exception("a copy of an interpreter was not made")
                break
