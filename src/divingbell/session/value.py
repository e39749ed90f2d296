"""The value of a cell: data that its interpreter has sent, or the text that stands for it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from divingbell.models import ValueKind
from divingbell.session.outcome import Ending
from divingbell.shares import weight
from divingbell.shares.collector import COLLECTOR
from divingbell_inside import values

MAX_SIZE = 8 << 20
MAX_WEIGHT = 600_000
"""Of a value as JSON (see `divingbell.shares.weight`): a list of 300,000 numbers. Measured: it is
read within 150 ms, in a thread; the longest that nothing else runs meanwhile is 20 ms."""
AT_ONCE = 1 << 11
"""Bytes that are read on the spot. Measured: the worst of them take 0.3 ms; to go to a thread and
back takes a third of it. Time zones, in whatever spelling, are read from files: in a thread."""
TOO_LARGE = (
    "the value is too large for a result, so a part of its text stands in its place: keep it in a "
    "variable and look at the parts that you need, or write it to a file in /workspace "
    "(a program that uses the library gets a variable with `await session.get(name)`)"
)


class CellValue(NamedTuple):
    """The value of a cell, what it is, and the sentence that goes with it."""

    data: Any = None
    kind: ValueKind = "data"
    note: str = ""

    def with_text(self, text: str, cut: bool) -> "CellValue":
        """Return it with the text that was shown for it."""
        return self._replace(data=text, kind="cut" if cut else self.kind)


async def value_of(ending: Ending, charge: Callable[[float], object]) -> CellValue:
    """Return the value that came with the end of a cell; `charge` gets the time that it took."""
    body = ending.body
    if len(body) <= AT_ONCE and b"zone" not in body and b"\\u" not in body:
        return _value_of(ending)
    return await weight.charged(lambda: COLLECTOR.at_rest(lambda: _value_of(ending)), charge)


def _value_of(ending: Ending) -> CellValue:
    body, kind = ending.body, (ending.header or {}).get("kind")
    if kind == "cut" or _is_too_large(body):
        return CellValue(kind="cut", note=TOO_LARGE)
    if kind is not None:
        return CellValue(kind="text")
    if not body:
        return CellValue()
    try:
        return CellValue(values.from_json(body))
    except values.InvalidData as error:
        return CellValue(kind="text", note=f"the value is given as text: {error}")


def _is_too_large(body: bytes) -> bool:
    return len(body) > MAX_SIZE or weight.is_heavier(body, MAX_WEIGHT)
