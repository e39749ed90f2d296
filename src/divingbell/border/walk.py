"""The texts of a value, wherever they stand in it: what a border has to look at."""

import dataclasses
from collections.abc import Callable
from typing import Any


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with all its texts changed: in lists and sets, in names and values of dicts,
    and in the dataclasses of `divingbell.models`. Bytes, numbers and what else there is stay as
    they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {with_texts(name, change): with_texts(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [with_texts(each, change) for each in value]
    if type(value) in (tuple, set, frozenset):
        return type(value)(with_texts(each, change) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        changed = {name: with_texts(getattr(value, name), change) for name in names}
        return dataclasses.replace(value, **changed)
    return value
