"""Output between cells: it belongs to an earlier one, and the next result shows it."""

from divingbell.models import OutputName
from divingbell.session.transcript import EVENT_COST, Transcript

MAX_KEPT = 1 << 16


class BackgroundOutput:
    """Text that was written while no cell ran, up to a limit."""

    def __init__(self) -> None:
        self._kept: list[tuple[OutputName, bytes, int]] = []
        self._bytes = 0

    def add(self, name: OutputName, data: bytes, cell: int) -> None:
        """Keep a piece of the stream of that name, written by what this cell has left running."""
        if self._bytes < MAX_KEPT:
            self._kept.append((name, data[:MAX_KEPT], cell))
            self._bytes += len(data) + EVENT_COST

    def pass_on(self, transcript: Transcript) -> None:
        """Show it with a cell that begins now."""
        for name, data, cell in self._kept:
            transcript.text(name, data, cell)
        self.clear()

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0
