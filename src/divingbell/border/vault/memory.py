"""The store of one process: nothing is written anywhere, and nothing outlives it."""

import itertools
import time
from collections.abc import Iterable, Sequence

from divingbell.border.vault.base import Counts, Row, Store
from divingbell.border.vault.tokens import kind_of


class MemoryStore(Store):
    """Keeps sealed rows in memory."""

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._check: bytes | None = None
        self._rows: dict[str, dict[str, Row]] = {}
        self._used: dict[str, float] = {}

    async def open(self, check: bytes) -> bytes:
        self._check = self._check or check
        return self._check

    async def put(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows.setdefault(row.conversation, {})[row.token] = row
            self._used[row.conversation] = time.monotonic()

    async def get(self, conversation: str, tokens: Iterable[str]) -> list[Row]:
        known = self._rows.get(conversation, {})
        return [known[token] for token in tokens if token in known]

    async def all_of(self, conversation: str, most: int) -> list[Row]:
        return list(itertools.islice(self._rows.get(conversation, {}).values(), most))

    async def anywhere(self, tokens: Iterable[str]) -> list[Row]:
        wanted = list(tokens)
        return [rows[token] for rows in self._rows.values() for token in wanted if token in rows]

    async def used(self, conversations: Iterable[str]) -> None:
        now = time.monotonic()
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
