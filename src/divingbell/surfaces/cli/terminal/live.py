"""The live part of the screen: the last lines, which are drawn again as they grow."""

from collections.abc import Callable, Sequence


class Live:
    """Lines at the bottom that are not final yet. What stands above them is never touched."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._drawn: list[str] = []

    def draw(self, lines: Sequence[str], rows: int) -> None:
        """Show these lines in the place of those before; of many, as many as fit the screen."""
        fitting = list(lines[-(rows - 1) :])
        if fitting != self._drawn:
            self._write(self._erasing() + "\n".join(fitting))
            self._drawn = fitting

    def settle(self, lines: Sequence[str]) -> None:
        """Show these lines for good."""
        self._write(self._erasing() + "".join(f"{line}\n" for line in lines))
        self._drawn = []

    def _erasing(self) -> str:
        if not self._drawn:
            return ""
        above = len(self._drawn) - 1
        return "\r" + (f"\x1b[{above}A" if above else "") + "\x1b[J"
