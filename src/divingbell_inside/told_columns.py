"""Told columns: what personal columns of a cell's tables say, told before anything is shown.

A table may be shown in ways that nobody can read as one: `df.values`, the rows of `itertuples`, a
sum by `last_name`. So where personal data is hidden the host gets the values of those columns of
pandas and polars whose names look personal. It can only hide more for it. What this process says
of its variables is all that it is: code can show a value that is in no table.
"""

import datetime
import json
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

from divingbell_inside.personal_names import usual_kind

MOST_VALUES = 5_000
"""Of one column, half of them from its end."""
MOST_OF_CELL = 10_000
"""Values that one cell tells of."""
MOST_BYTES = 1 << 18
"""Of what is told at once."""
MOST_TIMES = 48
"""Times that one cell tells something while it writes. The host hears no more than 64: what it did
not hear must not count as told."""
MOST_BYTES_OF_CELL = 7 * MOST_BYTES
"""Of all that one cell tells, of which the host hears 2 MB."""
MOST_NUMBER = 10**40
"""No number of anyone is as large, and Python refuses to write larger ones down."""
MOST_NAMES = 64
"""Variables that are looked at each time when something is written."""
MOST_VARIABLES = 2_000
MOST_COLUMNS = 32
"""Personal ones of one table; of all, ten times as many names are read."""
LONGEST_NAME, LONGEST_VALUE = 200, 500
_KINDS = {"pandas": ("DataFrame", "Series", "Index"), "polars": ("DataFrame", "Series")}

Column = tuple[str, list[Any]]


class ToldColumns:
    """Looks at the tables among the variables of a session, and tells of each value once."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._watched: list[str] = []
        self._seen: dict[str, weakref.ref[Any]] = {}
        """The tables that were looked at, by the names of their variables."""
        self._told: dict[str, None] = {}
        self._left = self._times = self._bytes = 0

    def begin(self, parts: Iterable[CodeType]) -> None:
        """Take note of the variables that a cell names."""
        self._left, self._times, self._bytes = MOST_OF_CELL, MOST_TIMES, MOST_BYTES_OF_CELL
        self._watched = list(dict.fromkeys(_names_in(parts)))[:MOST_NAMES]

    def fresh(self) -> bytes:
        """Return what those tables say that variables of the cell stand for since the last look."""
        if self._times <= 0:
            return b""  # and what there is still counts as new, at the end of the cell
        found = []
        for name in self._watched:
            value = self._names.get(name)
            if value is not None and self._is_new(name, value):
                found.append(value)
        self._times -= bool(found)
        return self._told_of(found) if found else b""

    def all(self, value: Any = None) -> bytes:
        """Return what a value says, the cell's tables as they are now, and all others that were not
        looked at yet."""
        found = [value] if _is_table(value) else []
        for name in self._watched:
            each = self._names.get(name)
            if _is_table(each) and each is not value:
                found.append(each)
        for name, each in list(self._names.items())[:MOST_VARIABLES]:
            if self._is_new(name, each):
                found.append(each)
        return self._told_of(found) if found else b""

    def _is_new(self, name: str, value: Any) -> bool:
        if not _is_table(value):
            return False
        seen = self._seen.get(name)
        if seen is not None and seen() is value:
            return False
        if len(self._seen) >= MOST_VARIABLES:
            self._seen.clear()
        self._seen[name] = weakref.ref(value)
        return True

    def _told_of(self, tables: list[Any]) -> bytes:
        told: dict[str, list[str | int]] = {}
        size = 0
        for name, values in _columns_of_all(tables):
            for value in map(_plain, values):
                if value is None or self._left <= 0 or f"{name}\0{value}" in self._told:
                    continue
                size += len(str(value)) + len(name) + 8
                if size > min(MOST_BYTES, self._bytes) // 4:  # a character has four bytes at most
                    return self._written(told)
                self._left -= 1
                if len(self._told) >= 4 * MOST_OF_CELL:
                    self._told.clear()
                self._told[f"{name}\0{value}"] = None
                told.setdefault(name, []).append(value)
        return self._written(told)

    def _written(self, told: dict[str, list[str | int]]) -> bytes:
        written = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") if told else b""
        self._bytes -= len(written)
        return written


def _names_in(parts: Iterable[CodeType]) -> Iterator[str]:
    """The names in code, in its functions too."""
    left = list(parts)
    while left:
        code = left.pop()
        yield from code.co_names
        left += (each for each in code.co_consts if isinstance(each, CodeType))


def _is_table(value: Any) -> bool:
    room = str(type(value).__module__).partition(".")[0]  # a class of the user's may say anything
    if room in _KINDS:
        return any(each.__name__ in _KINDS[room] for each in type(value).__mro__)
    return False


def _columns_of_all(tables: Iterable[Any]) -> Iterator[Column]:
    for table in tables:
        try:
            yield from _columns_of(table)
        except Exception:  # a table of the user's, which may do anything; others are still told
            continue


def _columns_of(table: Any) -> Iterator[Column]:
    left = MOST_COLUMNS
    is_pandas = type(table).__module__.partition(".")[0] == "pandas"
    for label, values in _of_pandas(table) if is_pandas else _of_polars(table):
        name = _personal_part(label)
        if name and left > 0:
            left -= 1
            yield name, _ends_of(values)


def _of_pandas(table: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(table, "levels") or not hasattr(table, "index"):
        yield from _levels_of(table)
        return
    yield from _levels_of(table.index)
    if not hasattr(table, "columns"):
        yield table.name, table
        return
    yield from _levels_of(table.columns)
    for at, label in enumerate(table.columns[: 10 * MOST_COLUMNS]):
        if _personal_part(label):
            yield label, table.iloc[:, at]


def _levels_of(index: Any) -> Iterator[tuple[Any, Any]]:
    for at, name in enumerate(index.names):
        if name is not None:
            yield name, index.get_level_values(at)


def _of_polars(table: Any) -> Iterator[tuple[Any, Any]]:
    if not hasattr(table, "columns"):
        yield table.name, table
        return
    for name in table.columns[: 10 * MOST_COLUMNS]:
        if _personal_part(name):
            yield name, table.get_column(name)


def _personal_part(label: Any) -> str:
    """The name of a column, or the part of it, that looks personal."""
    for part in label if isinstance(label, tuple) else (label,):
        if isinstance(part, str) and len(part) <= LONGEST_NAME and usual_kind(part):
            return part
    return ""


def _ends_of(column: Any) -> list[Any]:
    """The first and the last values of a column: what is shown of a long one."""
    if len(column) <= MOST_VALUES:
        return list(column.to_list())
    half = MOST_VALUES // 2
    return [*column[:half].to_list(), *column[-half:].to_list()]


def _plain(value: Any) -> str | int | None:
    """A value as it can be learned; None for one that is nobody's."""
    if isinstance(value, str):
        return value if value and len(value) <= LONGEST_VALUE else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value) if abs(value) < MOST_NUMBER else None
    if isinstance(value, float):
        is_whole = value == value and abs(value) < MOST_NUMBER and value == int(value)
        return int(value) if is_whole else None
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    return None
