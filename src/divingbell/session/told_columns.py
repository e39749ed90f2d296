"""What a session tells of its tables while a cell runs, until the border has learned from it.

It comes before the text that it is about, so that whatever has come is learned before anything is
shown. Sessions may tell anything, and as much as they like: only so much is kept.
"""

import asyncio
from collections.abc import Callable

from divingbell.border.border import Border, Charge
from divingbell.principal import Principal

MOST = 64
"""Times that one cell may tell something."""
MOST_BYTES = 2 << 20
"""Of all that one cell tells; one says at most an eighth of it at once."""


class ToldColumns:
    """What has been told and not been learned yet."""

    def __init__(self, border: Border, principal: Callable[[], Principal], charge: Charge) -> None:
        self._border, self._principal, self._charge = border, principal, charge
        self._waiting: list[bytes] = []
        self._times = self._bytes = 0
        self._learning = asyncio.Lock()

    @property
    def wanted(self) -> bool:
        """Whether anybody learns from it."""
        return self._border.learns(self._principal())

    def begin_cell(self) -> None:
        self._times = self._bytes = 0

    def add(self, told: bytes) -> None:
        """Keep what was told, unless it is more than a cell may tell or nobody asked."""
        self._times += 1
        self._bytes += len(told)
        if self._times <= MOST and self._bytes <= MOST_BYTES and self.wanted:
            self._waiting.append(told)

    async def learn(self) -> None:
        """Have the border learn all that has come; what somebody else is learning is waited for."""
        if not self._waiting and not self._learning.locked():
            return
        async with self._learning:
            waiting, self._waiting = self._waiting, []
            for told in waiting:
                await self._border.learn_told(told, self._principal(), self._charge)
