"""A count of how often Python's garbage collector has begun."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collections_begun() -> Iterator[list[int]]:
    """Yield a list that gets the generation of each collection that begins in the block."""
    begun: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            begun.append(about["generation"])

    gc.callbacks.append(note)
    try:
        yield begun
    finally:
        gc.callbacks.remove(note)
