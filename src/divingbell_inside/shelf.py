"""The shelf of a session: displays kept as files in /workspace/.outputs, to be fetched."""

import contextlib
import os
import threading

from divingbell_inside import layout

MAX_FILES = 100
"""Of one cell."""
MAX_SEEN = 32 << 20
"""Bytes of images that were shown, too: they must not fill the disk of a long session."""


class NotKept(Exception):
    """Raised where a display is not kept; the message says why."""


class Shelf:
    """Writes files named after their cell: `cell-3-1.png` is the first one of cell 3."""

    def __init__(self) -> None:
        self._cell = 0
        self._number = 0
        self._seen_bytes = 0
        self._of_display: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def keep(self, cell: int, kind: str, raw: bytes, display_id: str | None = None) -> str:
        """Write a form of a display; return the name of the file.

        A display that is updated in its own cell keeps its file.

        Raises:
            NotKept: there are many already, or it can't be written.
        """
        with self._lock:  # threads show things, too
            name = self._name(cell, kind, len(raw), display_id)
        _write(f"{layout.OUTPUTS}/{name}", raw)
        return name

    def _name(self, cell: int, kind: str, size: int, display_id: str | None) -> str:
        if cell != self._cell:
            self._cell, self._number = cell, 0
            self._of_display.clear()
        if display_id is None:
            return self._next_name(kind, size)
        if (display_id, kind) not in self._of_display:
            self._of_display[display_id, kind] = self._next_name(kind, size)
        return self._of_display[display_id, kind]

    def _next_name(self, kind: str, size: int) -> str:
        if self._number >= MAX_FILES:
            raise NotKept(f"it is not kept: a cell keeps {MAX_FILES} displays")
        if kind in layout.IMAGES:
            self._seen_bytes += size
            if self._seen_bytes > MAX_SEEN:
                raise NotKept("it is not kept: the session has kept many images already")
        self._number += 1
        return f"cell-{self._cell}-{self._number}{layout.suffix_of(kind)}"


def _write(path: str, raw: bytes) -> None:
    try:
        os.makedirs(layout.OUTPUTS, exist_ok=True)
        with open(path, "wb") as file:
            file.write(raw)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)  # half of it is of no use, and takes up the disk
        raise NotKept(f"it could not be kept: {error.strerror}") from None
