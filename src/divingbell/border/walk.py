"""The texts of a value, wherever they stand in it: what a border has to look at."""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

LEAST_NUMBER, MOST_NUMBER = 10**4, 10**40
"""Whole numbers that may be somebody's, such as that of a card; a table may have made floats of
them."""


def with_texts(
    value: Any, change: Callable[[str], str], number: Callable[[float], Any] | None = None
) -> Any:
    """Return a value with all its texts changed: in lists and sets, in names and values of dicts,
    and in the dataclasses of `divingbell.models`. Bytes are texts where they are UTF-8. `number`
    may change long whole numbers. What else there is stays as it is."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, bytes):
        text = text_of(value)
        return value if text is None else change(text).encode()
    if type(value) in (int, float):
        return number(value) if number is not None and _is_long(value) else value
    if isinstance(value, Mapping):
        return {
            with_texts(name, change, number): with_texts(each, change, number)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [with_texts(each, change, number) for each in value]
    if type(value) in (tuple, set, frozenset):
        return type(value)(with_texts(each, change, number) for each in value)
    if _is_record(value):
        names = _fields_of(value.__class__)
        changed = {
            name: with_texts(getattr(value, name), change, number)
            for name in names
            if not _is_count(value, name)
        }
        return dataclasses.replace(value, **changed)
    return value


class Leaves:
    """The texts of a value and its long numbers, in the order in which `with_texts` meets them."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.texts: list[str] = []
        self._collect(value)

    def _collect(self, value: Any) -> None:
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, bytes):
            if (text := text_of(value)) is not None:
                self.texts.append(text)
        elif type(value) in (int, float):
            if _is_long(value):
                self.texts.append(str(int(value)))
        elif isinstance(value, Mapping):
            for name, each in value.items():
                self._collect(name)
                self._collect(each)
        elif isinstance(value, list) or type(value) in (tuple, set, frozenset):
            for each in value:
                self._collect(each)
        elif _is_record(value):
            for name in _fields_of(value.__class__):
                if not _is_count(value, name):
                    self._collect(getattr(value, name))

    def replaced_by(self, texts: list[str]) -> Any:
        """Return the value with other texts in the places of these, or the same value if they are
        the same; a number whose text is the same stays one."""
        if texts == self.texts:
            return self._value
        left = iter(texts)

        def number(found: float) -> Any:
            text = next(left)
            return found if text == str(int(found)) else text

        return with_texts(self._value, lambda _: next(left), number)


def text_of(value: bytes) -> str | None:
    """Return the text that bytes are, if they are one."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _is_long(number: float) -> bool:
    return LEAST_NUMBER <= abs(number) < MOST_NUMBER and number == int(number)


def _is_count(record: Any, name: str) -> bool:
    """Whether a field of a record is a number of our own, such as a time or a size."""
    return name != "value" and type(getattr(record, name)) in (int, float)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


@functools.cache
def _fields_of(kind: Hashable) -> tuple[str, ...]:
    assert isinstance(kind, type) and dataclasses.is_dataclass(kind)
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)
