"""The texts of a value, wherever they stand in it: what a border has to look at."""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

LEAST_NUMBER, MOST_NUMBER = 10**4, 10**40
"""Whole numbers that may be somebody's, such as that of a card; a table may have made floats of
them."""
_COUNTS = frozenset({int, float})
_NUMBERS = _COUNTS | {Decimal}
_GROUPS = frozenset({tuple, set, frozenset})
_CONTAINERS = _GROUPS | {list, dict}
_SAY_NOTHING = frozenset({bool, type(None)})


class TooLarge(Exception):
    """Raised where a value has more parts than are walked through at once."""


def with_texts(
    value: Any, change: Callable[[str], str], number: Callable[[Any], Any] | None = None
) -> Any:
    """Return a value with all its texts changed: in lists and sets, in names and values of dicts,
    and in the dataclasses of `divingbell.models`. Bytes are texts where they are UTF-8. `number`
    may change long whole numbers and dates. What else there is stays as it is."""
    kind = value.__class__
    if kind in _SAY_NOTHING or (kind is list and not value):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, bytes):
        text = text_of(value)
        return value if text is None else change(text).encode()
    if kind in _NUMBERS:
        return number(value) if number is not None and _is_long(value) else value
    if kind is dict or isinstance(value, Mapping):
        return {
            with_texts(name, change, number): with_texts(each, change, number)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [with_texts(each, change, number) for each in value]
    if kind in _GROUPS:
        return kind(with_texts(each, change, number) for each in value)
    if kind is complex:
        parts = [with_texts(each, change, number) for each in (value.real, value.imag)]
        is_changed = any(isinstance(each, str) for each in parts)
        return f"({parts[0]}+{parts[1]}j)" if is_changed else value
    if (record := _record_of(kind)) is not None:
        changed = {
            name: with_texts(each, change, number)
            for name, each in zip(record.names, record.parts_of(value), strict=True)
            if each.__class__ not in _COUNTS or name == "value"
        }
        return dataclasses.replace(value, **changed)
    return number(value) if number is not None and isinstance(value, date) else value


class Leaves:
    """The texts of a value, its long numbers and dates, in the order in which `with_texts` meets
    them.

    Raises:
        TooLarge: it has more than `most` parts, or as many bytes.
    """

    def __init__(self, value: Any, most: float = math.inf) -> None:
        self._value = value
        self._left = most
        self.texts: list[str] = []
        self._collect(value)

    @classmethod
    def of_small(cls, value: Any, parts: int, characters: int) -> "Leaves | None":
        """Return those of a value that has no more parts and characters than this, else None.

        To ask for its size first would be a walk of its own, and takes as long as all else.
        """
        try:
            leaves = cls(value, parts)
        except TooLarge:
            return None
        return leaves if sum(map(len, leaves.texts)) <= characters else None

    def _collect(self, value: Any) -> None:
        # By class, because that is told at once. Measured: a chain of `isinstance`, `Mapping` among
        # them, takes three times as long for 19,000 lists.
        kind = value.__class__
        if kind is list or kind in _GROUPS:
            self._collect_all(value)
        elif kind is dict:
            self._collect_pairs(value)
        elif kind in _NUMBERS:
            if _is_long(value):
                self.texts.append(_written(value))
        elif kind not in _SAY_NOTHING:
            self._collect_other(value)

    def _collect_all(self, parts: Collection[Any]) -> None:
        self._count(len(parts))
        add = self.texts.append
        for each in parts:
            kind = each.__class__
            if kind is str:
                add(each)
            elif kind not in _SAY_NOTHING and (each or kind is not list):
                self._collect(each)

    def _collect_pairs(self, pairs: Mapping[Any, Any]) -> None:
        self._count(len(pairs))
        add = self.texts.append
        for name, each in pairs.items():
            if name.__class__ is str:
                add(name)
            else:
                self._collect(name)
            kind = each.__class__
            if kind is str:
                add(each)
            elif kind not in _SAY_NOTHING:
                self._collect(each)

    def _collect_other(self, value: Any) -> None:
        # Records first: to ask whether something is a mapping takes as long as all of their fields.
        if (record := _record_of(value.__class__)) is not None:
            self._collect_fields(value, record)
        elif isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, bytes):
            self._count(len(value))
            if (text := text_of(value)) is not None:
                self.texts.append(text)
        elif isinstance(value, Mapping):
            self._collect_pairs(value)
        elif isinstance(value, list):
            self._collect_all(value)
        elif isinstance(value, date):
            self.texts.append(_written(value))
        elif value.__class__ is complex:
            self._collect_all((value.real, value.imag))

    def _collect_fields(self, value: Any, record: "_Record") -> None:
        names, parts_of = record
        parts = parts_of(value)
        self._count(len(parts))
        add = self.texts.append
        for name, each in zip(names, parts, strict=True):
            kind = each.__class__
            if kind is str:
                add(each)
            elif kind in _CONTAINERS:
                if each:
                    self._collect(each)
            elif kind not in _SAY_NOTHING and (kind not in _COUNTS or name == "value"):
                self._collect(each)

    def _count(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLarge

    def replaced_by(self, texts: list[str]) -> Any:
        """Return the value with other texts in the places of these, or the same value if they are
        the same; a number or date whose text is the same stays one."""
        if texts == self.texts:
            return self._value
        left = iter(texts)

        def number(found: Any) -> Any:
            text = next(left)
            return found if text == _written(found) else text

        return with_texts(self._value, lambda _: next(left), number)


def text_of(value: bytes) -> str | None:
    """Return the text that bytes are, if they are one."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _written(value: Any) -> str:
    """Return a date, or a whole number, as a text."""
    return value.isoformat() if isinstance(value, date) else str(int(value))


def _is_long(number: Any) -> bool:
    if number.__class__ is Decimal:
        return _is_long_decimal(number)
    return bool(LEAST_NUMBER <= abs(number) < MOST_NUMBER and number == int(number))


def _is_long_decimal(number: Decimal) -> bool:
    # Not by `abs`, which rounds, and fails for the largest; one that is no number compares to none.
    size = number.copy_abs()
    return number.is_finite() and LEAST_NUMBER <= size < MOST_NUMBER and size == int(size)


class _Record(NamedTuple):
    """A dataclass. Numbers in its fields are our own, such as a time or a size, but for a value."""

    names: tuple[str, ...]
    parts_of: Callable[[Any], tuple[Any, ...]]


@functools.cache
def _record_of(kind: Hashable) -> _Record | None:
    """What there is to a dataclass; None for any other class."""
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return None
    names = tuple(field.name for field in dataclasses.fields(kind) if field.init)
    if len(names) > 1:
        return _Record(names, attrgetter(*names))
    return _Record(names, lambda record: tuple(getattr(record, name) for name in names))
