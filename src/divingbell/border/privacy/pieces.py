"""Texts that come in pieces, such as what a running cell prints: shown as far as it is decided."""

import re
import threading
from collections.abc import Callable, Generator

from divingbell.border.privacy import cuts, views
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.screen import Screen

MOST_HELD = 1 << 16
"""Characters that are held back at most. Nothing that is found has so many, but for what overlaps
in a row: of that, so many are replaced at a time."""
CONTEXT = 200
"""Characters before a value that are read with it. Eighty decide, as in `shape`."""
DISGUISED_CONTEXT = 640
"""The same where there may be disguises: each of those characters may be escaped."""
STEP = 1 << 15
"""Characters of a piece that are read at once."""
WORK = 8
"""Times that a character may be read again because the text comes in small pieces."""
BEGINNING = 300
"""Characters that could be read in the time that it takes to begin with a few."""
SAVED_WORK = 1 << 16
"""Characters that may be read again at once: the first small pieces are shown without delay."""
UNKNOWN = "PRIVATE_KEY"
"""The kind of what is replaced undecided: the longest values are of this kind."""
_BLANK = re.compile(r"\s")

Replace = Callable[[str, str], str]
"""Returns what is shown for a value of a kind."""


class PieceScreen:
    """Replaces the values in a text that comes in pieces, wherever it is cut.

    Together the pieces that it returns are the whole text with its finds replaced. A piece may be
    fed from any thread; one waits until another is done. With `hides_cuts` what stands beside a cut
    of our own output is hidden too; the words that tell of it come in one piece.
    """

    def __init__(self, screen: Screen, replace: Replace, *, hides_cuts: bool = False) -> None:
        self._screen, self._replace = screen, replace
        self._hides_cuts = hides_cuts
        self._lock = threading.Lock()
        self._window = ""
        """What was shown last, and what is held back."""
        self._shown = 0
        """Characters of the window that were shown."""
        self._new: list[str] = []
        """Pieces that nobody has read yet."""
        self._size = 0
        """Characters of those."""
        self._may_read = SAVED_WORK

    def feed(self, piece: str) -> str:
        """Take a piece, and return what can be shown now.

        Where many small pieces come, several are read at once. An empty piece says that no more
        may come for a while: all that is decided is returned.
        """
        with self._lock:
            return views.finished(self._steps(piece))

    def feeding(self, piece: str) -> Generator[None, None, str]:
        """Do the same, and yield after each 32 kB, so that an event loop can give way there.

        Raises:
            RuntimeError: another piece is not done yet.
        """
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("Another piece of this text is being screened: wait until it is.")
        try:
            return (yield from self._steps(piece))
        finally:
            self._lock.release()

    def end(self) -> str:
        """Return all that was held back. What is fed afterwards is another text."""
        with self._lock:
            window = self._window + "".join(self._new)
            finds = self._screen.finds(window)
            if self._hides_cuts:
                finds = cuts.with_cuts(window, finds, self._screen)
            shown = self._replaced(window, finds, len(window))
            self._window, self._shown, self._new, self._size = "", 0, [], 0
            self._may_read = SAVED_WORK
            return shown

    def _steps(self, piece: str) -> Generator[None, None, str]:
        shown: list[str] = []
        for at in range(0, max(1, len(piece)), STEP):
            part = piece[at : at + STEP]
            self._new.append(part)
            self._size += len(part)
            self._may_read = min(SAVED_WORK + STEP * WORK, self._may_read + WORK * len(part))
            cost = BEGINNING + len(self._window) + self._size
            if not piece or self._may_read >= cost:
                self._may_read = max(0, self._may_read - cost)
                shown.append((yield from self._read()))
        return "".join(shown)

    def _read(self) -> Generator[None, None, str]:
        window = self._window + "".join(self._new)
        finds, end = yield from self._screen.settling(window, self._shown)
        if self._hides_cuts:
            finds = cuts.with_cuts(window, finds, self._screen)
            end = min(end, cuts.open_from(window))
            while finds and finds[-1].end > end:
                end = min(end, finds.pop().start)
        end = max(end, self._shown)
        shown = self._replaced(window, finds, end)
        while len(window) - end > MOST_HELD:
            shown += self._replace(window[end : end + MOST_HELD], UNKNOWN)
            end += MOST_HELD
        start = _start_of_context(window, end)
        self._window, self._shown, self._new, self._size = window[start:], end - start, [], 0
        return shown

    def _replaced(self, window: str, finds: list[Find], end: int) -> str:
        """What has not been shown yet, up to there."""
        parts = []
        at = self._shown
        for find in finds:
            start = max(at, find.start)
            if start < find.end:
                parts += [window[at:start], self._replace(window[start : find.end], find.kind)]
                at = find.end
        return "".join([*parts, window[at:end]])


def _start_of_context(window: str, end: int) -> int:
    start = max(0, end - DISGUISED_CONTEXT)
    if not views.may_hide(window[start:end]):
        start = max(0, end - CONTEXT)
    # Not within a number, which would look like another one.
    blank = _BLANK.search(window, start, start + (end - start) // 4) if start else None
    return blank.start() if blank else start
