"""Masked values: how many were hidden from models, by their kinds."""

import threading
from collections import Counter
from collections.abc import Mapping


class MaskedValues:
    """Counts each time that a token is shown in the place of a value. Any thread may count."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._guard = threading.Lock()

    def add(self, kind: str) -> None:
        with self._guard:
            self._counts[kind] += 1

    def by_kind(self) -> Mapping[str, int]:
        """Return the counts since the start."""
        with self._guard:
            return dict(self._counts)
