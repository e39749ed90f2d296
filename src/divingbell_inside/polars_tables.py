"""Frames and series of polars as columns of a column file, and back; pyarrow is not needed.

Shared by host and inside. polars has no index: one that is more than a range becomes the first
columns.
"""

import datetime
from collections.abc import Iterator
from typing import Any

from divingbell_inside import columns, objects, polars_types, texts, values
from divingbell_inside.columns import Broken, NotHeld, Reader, Spec, Writer

ANOTHER = 'ask for frame="pandas"'


def put_frame(writer: Writer, frame: Any) -> Spec:
    """Write a DataFrame.

    Raises:
        NotHeld: a column can't be held; the message names it.
    """
    index, labels = _range(frame.height), texts.put_texts(writer, [frame.columns])
    made = []
    for series in frame.get_columns():
        try:
            made.append(put_column(writer, series))
        except NotHeld as error:
            raise NotHeld(f"the column {series.name[:60]!r} {error}") from None
    return {
        "kind": "frame",
        "rows": frame.height,
        "count": frame.width,
        "index": index,
        "labels": {"type": "index", "column": {**labels, "as": "str"}, "name": None},
        "columns": made,
        "attrs": polars_types.put_types(frame.get_columns()),
    }


def put_series(writer: Writer, series: Any) -> Spec:
    """Write a Series.

    Raises:
        NotHeld: its values can't be held.
    """
    return {
        "kind": "series",
        "rows": len(series),
        "index": _range(len(series)),
        "column": put_column(writer, series),
        "name": series.name,
        "attrs": polars_types.put_types([series]),
    }


def _range(rows: int) -> Spec:
    return {"type": "range", "bounds": [0, rows, 1], "name": None}


def take_frame(reader: Reader) -> Any:
    """Read a DataFrame.

    Raises:
        Broken: it is none.
        NotHeld: polars has no such columns.
    """
    polars = columns.library("polars")
    header = reader.header
    rows, count = columns.length(header, "rows"), columns.length(header, "count")
    specs = columns.field(header, "columns", list)
    if len(specs) != count:
        raise Broken("it has another number of columns than the header says")
    made = _take_index(reader, header.get("index"), rows)
    labels = _take_labels(reader, header.get("labels"), count)
    types = polars_types.take_types(header)
    made += [
        _take_named(reader, spec, rows, label, types.get(label))
        for spec, label in zip(specs, labels, strict=True)
    ]
    named = {series.name: series for series in made}  # in a list, polars renames one without a name
    if len(named) != len(made):
        raise NotHeld(f"two columns have the same name, which polars can't: {ANOTHER}")
    return polars.DataFrame(named)


def _take_named(reader: Reader, spec: Any, rows: int, label: str, kind: Any) -> Any:
    try:
        return take_column(reader, spec, rows, kind).alias(label)
    except NotHeld as error:
        raise NotHeld(f"the column {label[:60]!r} {error}") from None


def take_series(reader: Reader) -> Any:
    """Read a Series; an index is left out.

    Raises:
        Broken: it is none.
        NotHeld: polars has no such values.
    """
    header = reader.header
    rows = columns.length(header, "rows")
    _take_index(reader, header.get("index"), rows)
    name = _name(header.get("name")) or ""
    kind = polars_types.take_types(header).get(name)
    return take_column(reader, header.get("column"), rows, kind).alias(name)


def _name(written: Any) -> str | None:
    try:
        name = values.decode(written)
    except values.InvalidData:
        raise Broken("a name is none") from None
    return None if name is None else str(name)


def _take_index(reader: Reader, spec: Any, rows: int) -> list[Any]:
    """Return the columns that stand for an index."""
    kind = columns.field(spec, "type", str)
    if kind == "range":
        return []
    if kind == "index":
        column = take_column(reader, spec.get("column"), rows)
        return [column.alias(_name(spec.get("name")) or "index")]
    levels, names = columns.field(spec, "columns", list), columns.field(spec, "names", list)
    if len(levels) != len(names):
        raise Broken("an index has another number of names than levels")
    return [
        _take_labelled(reader, level, rows, nested=True)[1].alias(_name(name) or f"level_{number}")
        for number, (level, name) in enumerate(zip(levels, names, strict=True))
    ]


def _take_labels(reader: Reader, spec: Any, count: int) -> list[str]:
    made = _take_index(reader, spec, count)
    if not made:  # pandas numbers what has no name
        bounds = columns.field(spec, "bounds", list)
        if len(bounds) != 3 or not all(type(bound) is int for bound in bounds) or not bounds[2]:
            raise Broken("a range has no bounds")
        labels = [str(label) for label in range(*bounds)[: count + 1]]
    else:
        labels = [str(label[0] if len(label) == 1 else label) for label in zip(*made, strict=True)]
    if len(labels) != count:
        raise Broken("it has another number of names than columns")
    return labels


# Columns


def put_column(writer: Writer, series: Any) -> Spec:
    """Write the values of one column.

    Raises:
        NotHeld: they are of a type that can't be held.
    """
    polars = columns.library("polars")
    dtype = series.dtype
    if dtype == polars.String:
        missing = series.is_null().to_numpy() if series.null_count() else None
        made = texts.put_texts(writer, _chunks(series), missing)
        return {**made, "as": "str"}
    if dtype in (polars.Categorical, polars.Enum):
        return _put_categories(writer, series)
    if dtype == polars.Datetime and dtype.time_zone is not None:
        plain = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        return {**columns.put_array(writer, plain), "type": "zoned", "zone": dtype.time_zone}
    if dtype == polars.Time and (series.cast(polars.Int64) % 1000 != 0).any():
        raise NotHeld("has times of day with nanoseconds, which Python has not: use cast(Int64)")
    if dtype in (polars.Date, polars.Datetime, polars.Duration):
        return columns.put_array(writer, series.to_numpy())
    if not (dtype == polars.Boolean or dtype.is_float() or dtype.is_integer()) or _is_wide(dtype):
        return _put_objects(writer, series)
    if not series.null_count():
        return columns.put_array(writer, series.to_numpy())
    made = columns.put_array(writer, series.fill_null(polars.lit(0).cast(dtype)).to_numpy())
    columns.put_mask(writer, series.is_null().to_numpy())
    return {**made, "type": "masked"}


def _is_wide(dtype: Any) -> bool:
    """Whether numbers are of a type that numpy does not have."""
    return str(dtype) in ("Int128", "UInt128")


def _put_objects(writer: Writer, series: Any) -> Spec:
    try:
        return {**objects.put_plain(writer, series.to_list()), "as": "object"}
    except values.NotPlain as error:
        raise NotHeld(f"holds something at {error.place} that {error.reason}: use cast()") from None


def _chunks(series: Any) -> Iterator[list[Any]]:
    for start in range(0, len(series), texts.ROWS):
        yield series.slice(start, texts.ROWS).fill_null("").to_list()


def _put_categories(writer: Writer, series: Any) -> Spec:
    polars = columns.library("polars")
    is_fixed = series.dtype == polars.Enum
    plain = series.cast(polars.String)
    names = series.dtype.categories if is_fixed else plain.drop_nulls().unique(maintain_order=True)
    if len(names) > columns.MAX_CATEGORIES:
        raise NotHeld(f"has more than {columns.MAX_CATEGORIES:,} categories: use cast(String)")
    made = texts.put_texts(writer, [names.to_list()])
    codes = plain.cast(polars.Enum(names)).to_physical().cast(polars.Int32).fill_null(-1)
    return {
        "type": "categories",
        "count": len(names),
        "labels": {**made, "as": "str"},
        "dtype": columns.put_array(writer, codes.to_numpy())["dtype"],
        "ordered": is_fixed,
    }


def take_column(reader: Reader, spec: Any, rows: int, kind: Any = None) -> Any:
    """Read the values of one column; `kind` is the type that it had, where that was kept.

    Raises:
        Broken: they are none.
        NotHeld: polars has no such values.
    """
    if kind is None or columns.field(spec, "type", str) != "data":
        series = _take_column(reader, spec, rows)
        return series if kind is None else polars_types.restored(series, kind)
    items = objects.take_plain(reader, spec, rows)
    series = polars_types.from_items(items, kind)
    return _made(items) if series is None else series


def _take_column(reader: Reader, spec: Any, rows: int) -> Any:
    polars = columns.library("polars")
    kind = columns.field(spec, "type", str)
    if kind == "array":
        return _take_array(reader, spec, rows)
    if kind == "masked":
        series = _take_array(reader, spec, rows)
        return series.set(polars.Series(columns.take_mask(reader, rows)), None)
    if kind == "zoned":
        zone = _zone(spec.get("zone"))
        series = _take_array(reader, spec, rows)
        if series.dtype != polars.Datetime:
            raise Broken("a column with a time zone has no times")
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    if kind == "text":
        return _take_texts(reader, spec, rows)
    if kind == "categories":
        return _take_categories(reader, spec, rows)
    if kind == "data":
        return _made(objects.take_plain(reader, spec, rows))
    raise Broken("a column is of no known kind")


def _zone(written: Any) -> str:
    zone = columns.take_zone(written)
    if zone.utcoffset(None) not in (None, datetime.timedelta()):
        raise NotHeld(f"has a time zone without a name, which polars has not: {ANOTHER}")
    return str(zone)


def _made(items: list[Any]) -> Any:
    polars = columns.library("polars")
    try:
        return polars.Series(items)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        raise NotHeld(f"holds values that polars can't have in one column: {ANOTHER}") from None


def _take_array(reader: Reader, spec: Spec, rows: int) -> Any:
    polars = columns.library("polars")
    array = columns.take_array(reader, spec, rows)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind not in "biufmM":
        raise NotHeld(f"is of a type that polars has not: {ANOTHER}")
    if array.dtype.kind in "mM":
        unit = columns.library("numpy").datetime_data(array.dtype)[0]
        if unit not in ("D", "s", "ms", "us", "ns"):
            raise Broken("a column of times has a unit that polars does not know")
        if unit == "s" or (unit == "D" and array.dtype.kind == "m"):
            array = array.astype(f"{array.dtype.kind}8[ms]")
    return polars.Series(array)


def _take_texts(reader: Reader, spec: Spec, rows: int) -> Any:
    polars = columns.library("polars")
    chunks, missing = texts.take_texts(reader, spec, rows)
    parts = [polars.Series(chunk, dtype=polars.String) for chunk in chunks]
    series = polars.concat(parts) if parts else polars.Series([], dtype=polars.String)
    return series if missing is None else series.set(polars.Series(missing), None)


def _take_categories(reader: Reader, spec: Spec, rows: int) -> Any:
    polars = columns.library("polars")
    labels, found = _take_labelled(reader, spec, rows)
    if len(labels) > columns.MAX_CATEGORIES:
        raise Broken("a column has too many categories")
    if labels.dtype != polars.String:
        return found
    is_ordered = columns.field(spec, "ordered", bool)
    return found.cast(polars.Enum(labels) if is_ordered else polars.Categorical)


def _take_labelled(
    reader: Reader, spec: Any, rows: int, *, nested: bool = False
) -> tuple[Any, Any]:
    """Read labels, and the label of each row."""
    polars = columns.library("polars")
    count = columns.take_count(spec, nested=nested)
    labels = take_column(reader, spec["labels"], count)
    codes = polars.Series(columns.take_codes(reader, spec, count, rows))
    return labels, labels.gather(codes.set(codes < 0, None))
