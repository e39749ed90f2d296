"""The screen: what shapes find and what was learned, as one."""

import itertools
from collections.abc import Generator
from typing import NamedTuple

from divingbell.border.privacy import overwriting, views
from divingbell.border.privacy.find import Find, merged
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import Scanner

LONGEST_OPEN = 1 << 16
"""Characters before the end of a text among which a value begins that may go on."""
LONGEST_DISGUISED = 1024
"""The same for one in disguise that goes on in another line."""
FOLLOWING = views.AROUND + 16
"""Characters after a value within which a disguise makes its neighbourhood be read."""


class Settled(NamedTuple):
    """The finds of a text that may go on, as far as they are decided."""

    finds: list[Find]
    """Sorted and disjoint. None reaches beyond `end`."""
    end: int
    """Up to this character nothing changes, whatever follows the text."""


class Screen:
    """Finds values by their shapes, and learned values wherever they come again."""

    def __init__(self, scanner: Scanner, learned: Learned) -> None:
        self._scanner = scanner
        self.learned = learned
        self.learned_elsewhere: tuple[Learned, ...] = ()
        """Values of others that are looked for here, too."""

    @property
    def all_learned(self) -> list[Learned]:
        """Those that have any values."""
        return [each for each in (self.learned, *self.learned_elsewhere) if len(each)]

    @property
    def _finders(self) -> tuple[views.Finder, ...]:
        return (self._scanner, *self.all_learned)

    @property
    def longest(self) -> int:
        """The most characters that a find can have together with what decides about it."""
        return max(self._scanner.longest, *(each.longest for each in self.all_learned), 0)

    def finds(self, text: str) -> list[Find]:
        """Return all finds, sorted and disjoint: what overlaps is one, of the longest's kind."""
        found = self._scanner.finds(text, *self.all_learned)
        if not overwriting.occurs(text):
            return found
        near = overwriting.finds(text, self._finders)
        return merged(itertools.chain(found, *near))

    def scanning(self, text: str) -> Generator[None, None, list[Find]]:
        """Do the same, and yield after each piece of 32 kB: an event loop can give way there."""
        found = yield from self._scanner.scanning(text, *self.all_learned)
        if not overwriting.occurs(text):
            return found
        for near in overwriting.finds(text, self._finders):
            found += near
            yield
        return merged(found)

    def settled(self, text: str, since: int = 0) -> Settled:
        """Return the finds in a text that may go on, and up to where they are decided.

        Whole lines are, but for a private key that has begun, a number that a word in the next
        line may speak of, and a learned value that may go on there. `since` says up to where it
        is known to be decided.
        """
        return views.finished(self.settling(text, since))

    def settling(self, text: str, since: int = 0) -> Generator[None, None, Settled]:
        """Do the same, and yield after each piece of 32 kB."""
        found = yield from self.scanning(text)
        end = min(self._open_from(text, since), self._hidden_from(text, since, found))
        while found and found[-1].end > end:
            end = min(end, found.pop().start)
        return Settled(found, end)

    def _open_from(self, text: str, since: int) -> int:
        first = max(since, len(text) - LONGEST_OPEN)
        end = first + self._first_open(text[first:])
        if "BEGIN" not in text[first:]:
            first = text.rfind("\n", first, max(first, len(text) - LONGEST_DISGUISED)) + 1 or first
        for reading in views.readings(text[first:]):
            end = min(end, first + reading.place_of(self._first_open(reading.text)))
        if overwriting.occurs(text[first:]):
            places = overwriting.places_shown(text, first, len(text))
            index = self._first_open("".join(text[place] for place in places))
            end = min([end, *places[index : index + 1]])
        return end

    def _first_open(self, text: str) -> int:
        learned = (each.open_from(text) for each in self.all_learned)
        return min(self._scanner.open_from(text), *learned, len(text))

    def _hidden_from(self, text: str, since: int, found: list[Find]) -> int:
        """Where a value begins that is found only if there is a disguise near it, as may follow."""
        first = max(0, since - views.AROUND, len(text) - 2 * views.AROUND)
        if since == len(text) or not views.may_escape(text[first:]):
            return len(text)
        near = [find for find in found if find.end > first]
        for find in views.finds_without_disguise(text[first:], self._finders):
            hidden = Find(first + find.start, first + find.end, find.kind)
            if hidden.start >= len(text) - FOLLOWING and merged([*near, hidden]) != near:
                return hidden.start
        return len(text)
