"""Ways to do one thing, measured in turns, so that noise of the machine hits all of them alike."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from statistics import median

Way = Callable[[], Awaitable[list[float]]]
"""One turn; returns the seconds of each time that the thing was done."""


class Unable(Exception):
    """It can't be measured here; the message says why."""


class Turns:
    """The times of each way, turn by turn."""

    def __init__(self, ways: Mapping[str, Way]) -> None:
        self._ways = dict(ways)
        self._found: list[dict[str, list[float]]] = []
        self.missing: dict[str, str] = {}
        """Ways that turned out not to work here, and why."""

    async def take(self, rounds: int) -> "Turns":
        """Measure A B C C B A …, so that each also meets what another has left to be done.

        The first round is not counted.
        """
        for number in range(rounds + 1):
            turn = {}
            for name, way in list(self._ways.items())[:: -1 if number % 2 else 1]:
                try:
                    turn[name] = await way()
                except Unable as error:
                    print(f"· {name}: {error}", file=sys.stderr, flush=True)
                    self.missing[name] = str(error)
                    del self._ways[name]
            if number:
                self._found.append(turn)
        return self

    def __contains__(self, name: str) -> bool:
        return name in self._ways

    def times(self, name: str) -> list[float]:
        """The seconds of one way, of all turns."""
        return [taken for turn in self._found for taken in turn[name]]

    def ratio(self, name: str, other: str) -> float:
        """Of two in one turn, the median over all turns: what else happens hits both."""
        return median(median(turn[name]) / median(turn[other]) for turn in self._found)

    def difference(self, name: str, other: str) -> float:
        """Seconds that one takes longer than the other: of one turn, the median over all."""
        return median(median(turn[name]) - median(turn[other]) for turn in self._found)
