"""The end of what a cell shows, kept within a limit while the cell goes on."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from divingbell.models import Output, OutputName

RUN_COST = 64
"""Bytes that a run counts for besides its text: many short ones cost the host too."""

Display = list[Output]


@dataclass(slots=True)
class Run:
    """Text of one stream in a row."""

    name: OutputName
    cell: int
    data: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class Tail:
    """The last text, in runs, and the displays that came among it."""

    def __init__(self, most: int) -> None:
        self.dropped = 0
        """Bytes of text that had to make room for later ones."""
        self._most = most
        self._entries: dict[int, Run | Display] = {}
        self._runs: deque[int] = deque()
        """The numbers of the runs among the entries."""
        self._next = 0
        self._held = 0

    def add_text(self, name: OutputName, cell: int, data: bytes) -> None:
        last = self._entries.get(self._next - 1)
        if not isinstance(last, Run) or (last.name, last.cell) != (name, cell):
            last = Run(name, cell)
            self._held += RUN_COST if self._runs else 0
            self._runs.append(self._next)
            self._add(last)
        left_out = max(len(data) - self._most, 0)
        last.data += data[left_out:] if left_out else data
        self.dropped += left_out
        self._held += len(data) - left_out
        if left_out or self._held > self._most:
            self._make_room()

    @property
    def first_stream(self) -> tuple[OutputName, int]:
        """The name and the cell of the text that comes first."""
        first = self._entries.get(self._runs[0]) if self._runs else None
        return (first.name, first.cell) if isinstance(first, Run) else ("stdout", 0)

    def append(self, display: Display) -> None:
        """Add a display. It stays; whoever adds it counts it."""
        self._add(display)

    def _add(self, entry: Run | Display) -> None:
        self._entries[self._next] = entry
        self._next += 1

    def _make_room(self) -> None:
        while self._held > self._most:
            self._drop(self._held - self._most)
        first = self._entries[self._runs[0]]
        assert isinstance(first, Run)
        self._drop(_rest_of_a_character(first.data))

    def _drop(self, size: int) -> None:
        """Drop as much of the first run, and the run with its last byte."""
        run = self._entries[self._runs[0]]
        assert isinstance(run, Run)
        size = min(size, len(run.data))
        del run.data[:size]
        self._held -= size
        self.dropped += size
        if not run.data and len(self._runs) > 1:
            del self._entries[self._runs.popleft()]
            self._held -= RUN_COST

    def clear(self) -> None:
        self._entries.clear()
        self._runs.clear()
        self._held = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Run | Display]:
        return iter(self._entries.values())


def _rest_of_a_character(data: bytearray) -> int:
    """Return the number of bytes before the first whole character."""
    return next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
