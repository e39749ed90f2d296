"""Scalars of numpy and pandas, as the values of Python's own that they are."""

import datetime
import sys
from typing import Any


def as_python(value: Any) -> Any:
    """Return the same value of Python's own; any other value as it is.

    What has no exact counterpart, such as a time with nanoseconds, stays as it is too. `NaT` and
    `NA` are None, as numpy itself has it. Neither library is imported for it.
    """
    kind = type(value)
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and hasattr(numpy, "generic") and issubclass(kind, numpy.generic):
        return _of_numpy(value, numpy) if kind.__module__ == "numpy" else value
    if hasattr(pandas, "Timedelta"):  # not while it is being imported
        return _of_pandas(value, kind, pandas)
    return value


def _of_numpy(value: Any, numpy: Any) -> Any:
    if isinstance(value, numpy.void):  # its item is a tuple, without the names of its fields
        return value
    if type(value) not in (numpy.datetime64, numpy.timedelta64):
        return value.item()
    if numpy.isnat(value):
        return None
    unit, _ = numpy.datetime_data(value.dtype)
    if unit in ("ns", "ps", "fs", "as"):
        rounded = value.astype(value.dtype.str[1:2] + "8[us]")
        value = rounded if rounded == value else value
    made = value.item()
    is_time = type(made) in (datetime.date, datetime.datetime, datetime.timedelta)
    return made if is_time else value


def _of_pandas(value: Any, kind: type, pandas: Any) -> Any:
    if value is pandas.NaT or value is pandas.NA:
        return None
    if kind is pandas.Timestamp and not value.nanosecond:
        return value.to_pydatetime()
    if kind is pandas.Timedelta and not value.nanoseconds:
        return value.to_pytimedelta()
    return value
