"""Plain data made of what a function returns, and measured while it is made.

Whatever a function returns, no more of it is copied than may be sent: a list of a thousand million
numbers, a generator without an end, or a small structure that holds itself many times.
"""

import dataclasses
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from enum import Enum
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from divingbell.errors import ToolFailed
from divingbell.gateway.catalog.definitions import giving_way
from divingbell.shares import weight

MAX_DEPTH = 100
MAX_BITS = 13_000
"""Of a whole number: Python itself writes and reads no more than 4,300 digits."""
_DIGITS = 24
"""Characters of a number with a point, at most."""
_BINARY = (bytes, bytearray, memoryview)
_LISTS = (Sequence, Set, ValuesView, deque)


class Plain(NamedTuple):
    """Plain data, and how much it is."""

    value: Any
    characters: int
    weight: int
    """See divingbell.shares.weight."""


class NoRoom(Exception):
    """There is more than may be sent."""


def plain(name: str, value: Any, characters: int, most_weight: int = weight.MAX_RESULT) -> Plain:
    """Return numbers, text, lists and dicts for a value; `name` is the tool's.

    Dates, decimals, paths and the like become text, data classes and models dicts, sets and what a
    generator yields lists.

    Raises:
        NoRoom: it has more characters, about, or weighs more.
        ToolFailed: it holds something that is no data.
    """
    copy = _Copy(name, characters, most_weight)
    made = copy.items(value, 0) if isinstance(value, Iterator) else copy.of(value, 0)
    return Plain(made, characters - copy.characters, most_weight - copy.weight)


class _Copy:
    """Copies one value, as long as there is room."""

    def __init__(self, name: str, characters: int, most_weight: int) -> None:
        self._name = name
        self.characters, self.weight = characters, most_weight
        """What is left of both."""

    def _take(self, characters: int, units: int = 1) -> None:
        self.characters -= characters
        self.weight -= units
        if self.characters < 0 or self.weight < 0:
            raise NoRoom

    def of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            self._take(5)
            return value
        if isinstance(value, Enum):
            return self.of(value.value, depth + 1)
        if isinstance(value, str):
            self._take(len(value) + 2, 2)
            return str(value)
        if isinstance(value, int | float):
            return self._number(value)
        if depth > MAX_DEPTH:
            raise self._unfit("it is nested too deeply, or holds itself")
        if isinstance(value, Mapping):
            pairs = giving_way(value.items())
            self._take(2, weight.CONTAINER)
            return {self._key(key, depth): self.of(inner, depth + 1) for key, inner in pairs}
        if isinstance(value, _LISTS) and not isinstance(value, _BINARY):
            return self.items(value, depth)
        return self.of(self._dumped(value), depth + 1)

    def items(self, values: Iterable[Any], depth: int) -> list[Any]:
        self._take(2, weight.CONTAINER)
        return [self.of(each, depth + 1) for each in giving_way(values)]

    def _number(self, value: int | float) -> int | float:
        if isinstance(value, float):
            self._take(_DIGITS)
            return float(value)
        if value.bit_length() > MAX_BITS:
            raise self._unfit("a whole number has too many digits; send it as text")
        self._take(value.bit_length() // 3 + 2)
        return int(value)

    def _key(self, key: Any, depth: int) -> str:
        name = self.of(key, depth + 1)
        if isinstance(name, list | dict):
            raise self._unfit(f"{type(key).__name__} is the key of a dict; use text")
        return name if isinstance(name, str) else json.dumps(name)

    def _dumped(self, value: Any) -> Any:
        """A value that is neither a number nor a text, list or dict, as one of these."""
        if isinstance(value, BaseModel):
            if weight.is_large(value, self.weight, self.characters):
                raise NoRoom  # before it is copied
            return value.model_dump(mode="json", by_alias=True, warnings=False)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        if isinstance(value, _BINARY):
            raise self._unfit("bytes are no text; send base64, or put a file into the session")
        if isinstance(value, Iterator):  # pydantic would read it to its end
            raise self._unfit(f"{type(value).__name__} is read once; make a list of it")
        try:
            return to_jsonable_python(value)
        except PydanticSerializationError:
            kind = type(value).__name__
            raise self._unfit(f"{kind} is no data; return numbers, text, lists or dicts") from None

    def _unfit(self, why: str) -> ToolFailed:
        words = f"{self._name}: what the function returned can't be sent: {why}. The call was made"
        return ToolFailed(words, "tool_result")
