"""The store of one process: nothing is written anywhere, and nothing outlives it."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from divingbell.border.vault.base import Counts, Row, Store
from divingbell.border.vault.tokens import kind_of


class MemoryStore(Store):
    """Keeps sealed rows in memory."""

    def __init__(self, keep: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep = keep
        self._clock = clock
        self._check: bytes | None = None
        self._rows: dict[str, dict[str, Row]] = {}
        self._used: dict[str, float] = {}

    async def open(self, check: bytes) -> bytes:
        self._check = self._check or check
        return self._check

    async def put(self, rows: Sequence[Row]) -> list[Row]:
        there: list[Row] = []
        for row in rows:
            self._used[row.conversation] = self._clock()
            stands = self._rows.setdefault(row.conversation, {}).setdefault(row.token, row)
            if stands is not row:
                there.append(stands)
        return there

    async def replace(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._used[row.conversation] = self._clock()
            self._rows.setdefault(row.conversation, {})[row.token] = row

    async def get(self, conversation: str, tokens: Iterable[str]) -> list[Row]:
        known = self._known(conversation)
        return [known[token] for token in tokens if token in known]

    async def all_of(self, conversation: str, most: int) -> list[Row]:
        return list(itertools.islice(self._known(conversation).values(), most))

    def _known(self, conversation: str) -> Mapping[str, Row]:
        is_over = self._used.get(conversation, 0.0) < self._clock() - self._keep
        return {} if is_over else self._rows.get(conversation, {})

    async def anywhere(self, tokens: Iterable[str]) -> list[Row]:
        wanted = list(tokens)
        return [rows[token] for rows in self._rows.values() for token in wanted if token in rows]

    async def used(self, conversations: Iterable[str]) -> None:
        now = self._clock()
        for name in conversations:
            if name in self._rows:
                self._used[name] = now
        for name in [name for name, last in self._used.items() if last < now - self._keep]:
            del self._used[name], self._rows[name]

    async def counts(self) -> Counts:
        values: dict[str, int] = {}
        for rows in self._rows.values():
            for token in rows:
                kind = kind_of(token)
                values[kind] = values.get(kind, 0) + 1
        return Counts(len(self._rows), values)

    async def close(self) -> None:
        self._rows.clear()
