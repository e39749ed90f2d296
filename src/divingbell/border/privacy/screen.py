"""The screen: what shapes find and what was learned, as one."""

from collections.abc import Generator

from divingbell.border.privacy import views
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import Scanner


class Screen:
    """Finds values by their shapes, and learned values wherever they come again."""

    def __init__(self, scanner: Scanner, learned: Learned) -> None:
        self._scanner = scanner
        self.learned = learned

    @property
    def longest(self) -> int:
        """The most characters that a find can have together with what decides about it."""
        return max(self._scanner.longest, self.learned.longest)

    def finds(self, text: str) -> list[Find]:
        """Return all finds, sorted and disjoint: what overlaps is one, of the longest's kind."""
        return views.finished(self.scanning(text))

    def scanning(self, text: str) -> Generator[None, None, list[Find]]:
        """Do the same, and yield after each piece of 32 kB: an event loop can give way there."""
        return self._scanner.scanning(text, self.learned)
