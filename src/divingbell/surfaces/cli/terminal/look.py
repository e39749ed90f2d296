"""The look of a screen: whether it has colours, whether it can be redrawn, and how large it is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from divingbell.surfaces.cli.terminal.writer import STDOUT

LEAST_COLUMNS = 20
USUAL = os.terminal_size((80, 24))


@dataclass(frozen=True, slots=True)
class Look:
    """What stdout can show."""

    is_terminal: bool = False
    colours: bool = False
    live: bool = False
    """Whether lines can be drawn again."""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Look":
        """Return the look of stdout."""
        if not os.isatty(STDOUT):
            return cls()
        capable = environment.get("TERM", "") not in ("", "dumb")
        return cls(True, capable and not environment.get("NO_COLOR"), capable)

    @property
    def columns(self) -> int:
        return max(_size().columns, LEAST_COLUMNS)

    @property
    def rows(self) -> int:
        return max(_size().lines, 2)

    def dim(self, text: str) -> str:
        """Return a text that stands back."""
        return f"\x1b[2m{text}\x1b[22m" if self.colours else text


def _size() -> os.terminal_size:
    try:
        size = os.get_terminal_size(STDOUT)
    except OSError:
        return USUAL
    return size if size.columns else USUAL
