"""The interface of a sentence model, as search by meaning uses it."""

from collections.abc import Sequence
from typing import Any, Protocol


class Encoder(Protocol):
    """Turns texts into points: what is near is alike. Any thread may, several at once."""

    name: str
    """The name that its points are kept under. A model that gives others has another name."""
    size: int
    """Numbers that a point has."""
    before_query: str
    """Text that the model is to read before a query."""
    before_tool: str
    """Text that it is to read before that of a tool."""

    def encode(self, texts: Sequence[str], most: int) -> Any:
        """Return a row for each text, at the distance 1, of its first `most` pieces."""
        ...
