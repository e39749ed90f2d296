"""Types of polars that a column file does not tell, kept by name in the attributes of a frame.

Where a session has no polars, a frame of polars is one of pandas there: dates are times, wide
integers are objects. pandas takes attributes along through nearly all that is done with a frame,
so columns come back in their types, as long as they have their names and their values are of
them. Only types of a fixed width are kept: a hostile name of a nested one could ask for any amount
of memory. Shared by host and inside.
"""

import datetime
import decimal
import re
from collections.abc import Iterable
from typing import Any

from divingbell_inside import columns, values
from divingbell_inside.columns import MAX_LENGTH, Spec

KEY = "polars"
"""Of the attributes. Its value has a type for each name of a column."""
_ITEMS: dict[str, type | None] = {
    "Date": datetime.date,
    "Time": datetime.time,
    "Binary": bytes,
    "Int128": int,
    "UInt128": int,
    "Float16": None,
    "Null": None,
}
"""The kept types, and what their values are in Python where they travel as plain data."""
_DECIMAL = re.compile(r"Decimal\(precision=(\d{1,2}), scale=(\d{1,2})\)")
MAX_PRECISION = 38


def put_types(series: Iterable[Any]) -> Spec:
    """Return the attributes that keep the types of these columns, as a header has them."""
    names = ((each.name, str(each.dtype)) for each in series)
    kept = {name: kind for name, kind in names if kind in _ITEMS or _DECIMAL.fullmatch(kind)}
    # The length of the header limits them, as it does the columns.
    made: Spec = values.encode({KEY: kept} if kept else {}, items=MAX_LENGTH, text=MAX_LENGTH)
    return made


def take_types(header: Spec) -> dict[str, Any]:
    """Return the types that were kept; whatever else is in their place does not count.

    Raises:
        Broken: there are no attributes.
    """
    kept = columns.take_attributes(header).get(KEY)
    found = {} if type(kept) is not dict else {name: _type(kind) for name, kind in kept.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _type(name: Any) -> Any:
    polars = columns.library("polars")
    if type(name) is not str:
        return None
    if name in _ITEMS:
        kind = getattr(polars, name, None)  # an old polars has not all of them
        return None if kind is None else kind()
    decimals = _DECIMAL.fullmatch(name)
    if decimals is None:
        return None
    precision, scale = map(int, decimals.groups())
    return polars.Decimal(precision, scale) if scale <= precision <= MAX_PRECISION else None


def from_items(items: list[Any], kind: Any) -> Any:
    """Return plain data as a column of a kept type, or None where it is not of that type."""
    polars = columns.library("polars")
    item = decimal.Decimal if kind == polars.Decimal else _ITEMS[str(kind)]
    if not set(map(type, items)) <= {item, type(None)}:
        return None
    try:
        series = polars.Series(items, dtype=kind)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        return None
    return series if series.to_list() == items else None


def restored(series: Any, kind: Any) -> Any:
    """Return a column in the type that was kept of it, or as it is where it is of another now."""
    polars = columns.library("polars")
    if series.null_count() == len(series):
        return polars.repeat(None, len(series), dtype=kind, eager=True)
    is_time = series.dtype == polars.Datetime and series.dtype.time_zone is None
    is_half = str(kind) == "Float16" and series.dtype == polars.Float32
    if not (kind == polars.Date and is_time) and not is_half:
        return series
    made = series.cast(kind, strict=False)
    return made if made.cast(series.dtype).equals(series) else series
