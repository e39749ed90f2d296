"""Frames and series of pandas as columns of a column file, and back.

Only exact types are taken: the methods of a subclass may do anything, and what it holds beside its
columns would be lost. Shared by host and inside.
"""

from typing import Any

from divingbell_inside import arrow_texts, columns, objects, values
from divingbell_inside.columns import Broken, NotHeld, Reader, Spec, Writer

_MASKED = {
    **{f"{sign}{bits}": sign for bits in (8, 16, 32, 64) for sign in ("Int", "UInt")},
    "Float32": "Float",
    "Float64": "Float",
    "boolean": "Boolean",
}
"""pandas' nullable types, and the kind of array that holds each."""
_INDEXES = ("Index", "DatetimeIndex", "TimedeltaIndex", "CategoricalIndex")
_UNITS = ("s", "ms", "us", "ns")


def put_frame(writer: Writer, frame: Any) -> Spec:
    """Write a DataFrame.

    Raises:
        NotHeld: a column, the index or a name can't be held; the message names it.
    """
    index = _named("the index", put_index, writer, frame.index)
    labels = _named("the index of the columns", put_index, writer, frame.columns)
    made = [
        _named(f"the column {_shown(label, number)}", put_column, writer, frame.iloc[:, number])
        for number, label in enumerate(frame.columns)
    ]
    rows, count = frame.shape
    return {
        "kind": "frame",
        "rows": rows,
        "count": count,
        "index": index,
        "labels": labels,
        "columns": made,
        "attrs": _put_name(frame.attrs),
    }


def take_frame(reader: Reader) -> Any:
    """Read a DataFrame.

    Raises:
        Broken: it is none.
    """
    pandas = columns.library("pandas")
    header = reader.header
    rows, count = columns.length(header, "rows"), columns.length(header, "count")
    specs = columns.field(header, "columns", list)
    if len(specs) != count:
        raise Broken("it has another number of columns than the header says")
    index = take_index(reader, header.get("index"), rows)
    labels = take_index(reader, header.get("labels"), count)
    made = {
        number: _with_index(_take_named(reader, spec, rows, _shown(label, number)), index)
        for number, (spec, label) in enumerate(zip(specs, labels, strict=True))
    }
    frame = pandas.DataFrame(made, index=index, copy=False)
    frame.columns = labels
    frame.attrs = columns.take_attributes(header)
    return frame


def put_series(writer: Writer, series: Any) -> Spec:
    """Write a Series.

    Raises:
        NotHeld: its values, its index or its name can't be held.
    """
    return {
        "kind": "series",
        "rows": len(series),
        "index": _named("the index", put_index, writer, series.index),
        "column": _named("the Series", put_column, writer, series),
        "name": _put_name(series.name),
        "attrs": _put_name(series.attrs),
    }


def take_series(reader: Reader) -> Any:
    """Read a Series.

    Raises:
        Broken: it is none.
    """
    pandas = columns.library("pandas")
    header = reader.header
    rows = columns.length(header, "rows")
    index = take_index(reader, header.get("index"), rows)
    column = _with_index(take_column(reader, header.get("column"), rows), index)
    series = pandas.Series(column, index=index, copy=False, name=_take_name(header.get("name")))
    series.attrs = columns.take_attributes(header)
    return series


def _named(what: str, put: Any, writer: Writer, value: Any) -> Spec:
    try:
        made: Spec = put(writer, value)
    except NotHeld as error:
        raise NotHeld(f"{what} {error}") from None
    return made


def _take_named(reader: Reader, spec: Any, rows: int, name: str) -> Any:
    try:
        return take_column(reader, spec, rows)
    except NotHeld as error:
        raise NotHeld(f"the column {name} {error}") from None


def _shown(label: Any, number: int) -> str:
    """Return the name of a column or a level as text; what has none to show goes by its number."""
    parts = label if type(label) is tuple else (label,)
    if all(type(part) in (str, int, float, bool) for part in parts):
        return repr(label)[:60]
    return f"number {number}"


def _with_index(column: Any, index: Any) -> Any:
    """Return a column of objects as a Series: pandas would guess at their type otherwise."""
    if _is_objects(column):
        return columns.library("pandas").Series(column, index=index, dtype=object, copy=False)
    return column


def _is_objects(column: Any) -> bool:
    return isinstance(column, columns.library("numpy").ndarray) and column.dtype.kind == "O"


# Names and what else a frame is labelled with


def _put_name(name: Any) -> Any:
    try:
        return values.encode(name)
    except values.NotPlain as error:
        raise NotHeld(f"has a name or an attribute that {error.reason}: rename it") from None


def _take_name(written: Any) -> Any:
    try:
        name = values.decode(written)
        hash(name)
    except (values.InvalidData, TypeError):
        raise Broken("a name is none") from None
    return name


# The index


def put_index(writer: Writer, index: Any) -> Spec:
    """Write an index: of rows, or of the names of columns.

    Raises:
        NotHeld: it is of a kind that can't be held.
    """
    pandas = columns.library("pandas")
    if type(index) is pandas.RangeIndex:
        bounds = [index.start, index.stop, index.step]
        return {"type": "range", "bounds": bounds, "name": _put_name(index.name)}
    if type(index) is pandas.MultiIndex:
        return _put_levels(writer, index)
    if type(index) not in (getattr(pandas, name) for name in _INDEXES):
        raise NotHeld(f"is a {type(index).__name__}: use reset_index(), or astype(str)")
    return {
        "type": "index",
        "column": put_column(writer, index),
        "name": _put_name(index.name),
    }


def _put_levels(writer: Writer, index: Any) -> Spec:
    names = [_put_name(name) for name in index.names]
    made = []
    for number, level in enumerate(index.levels):
        try:
            made.append(_put_codes(writer, level, index.codes[number]))
        except NotHeld as error:
            shown = _shown(index.names[number], number)
            raise NotHeld(f"at level {shown} {error}") from None
    return {"type": "levels", "columns": made, "names": names}


def take_index(reader: Reader, spec: Any, count: int) -> Any:
    """Read an index of so many labels.

    Raises:
        Broken: it is none.
    """
    pandas = columns.library("pandas")
    kind = columns.field(spec, "type", str)
    if kind == "range":
        return pandas.RangeIndex(_range(spec, count), name=_take_name(spec.get("name")))
    if kind == "levels":
        levels = columns.field(spec, "columns", list)
        names = [_take_name(name) for name in columns.field(spec, "names", list)]
        if not levels or len(names) != len(levels):
            raise Broken("an index has another number of names than levels")
        taken = [_take_codes(reader, level, count, nested=True) for level in levels]
        # Checked already, and a check of pandas' own hashes what may be chosen to be slow.
        return pandas.MultiIndex(
            levels=[labels for labels, _ in taken],
            codes=[codes for _, codes in taken],
            names=names,
            verify_integrity=False,
        )
    if kind == "index":
        column = take_column(reader, spec.get("column"), count)
        return _indexed(column, _take_name(spec.get("name")))
    raise Broken("an index is of no known kind")


def _range(spec: Spec, count: int) -> range:
    bounds = columns.field(spec, "bounds", list)
    if len(bounds) != 3 or not all(type(bound) is int for bound in bounds) or bounds[2] == 0:
        raise Broken("a range has no bounds")
    if any(bound.bit_length() > 62 for bound in bounds) or len(range(*bounds)) != count:
        raise Broken("a range has another length than the header says")
    return range(*bounds)


def _indexed(column: Any, name: Any) -> Any:
    kind = object if _is_objects(column) else None
    return columns.library("pandas").Index(column, dtype=kind, name=name, copy=False)


# Columns


def put_column(writer: Writer, column: Any) -> Spec:
    """Write the values of one column: of a Series, or of an Index.

    Raises:
        NotHeld: they are of a type that can't be held.
    """
    numpy, pandas = columns.library("numpy"), columns.library("pandas")
    dtype, array = column.dtype, column.array
    if isinstance(dtype, numpy.dtype):
        plain = column.to_numpy()
        if dtype.kind == "O":
            return {**objects.put_objects(writer, plain), "as": "object"}
        return columns.put_array(writer, plain)
    if type(dtype) is pandas.StringDtype:
        kind = "string" if dtype.na_value is pandas.NA else "str"
        return {**_put_texts(writer, array), "as": kind}
    if type(dtype) is pandas.DatetimeTZDtype:
        zone = columns.put_zone(dtype.tz)
        made = columns.put_array(writer, array.to_numpy(dtype=f"datetime64[{dtype.unit}]"))
        return {**made, "type": "zoned", "zone": zone}
    if type(dtype) is pandas.CategoricalDtype:
        return _put_categories(writer, array)
    if str(dtype) in _MASKED and hasattr(dtype, "numpy_dtype"):
        plain = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
        made = columns.put_array(writer, plain)
        columns.put_mask(writer, array.isna())
        return {**made, "type": "masked"}
    raise NotHeld(
        f"has the type {str(dtype)[:60]}, which can't be passed: use astype(str), or write it as "
        'Parquet and pass that with format="parquet"'
    )


def _put_texts(writer: Writer, array: Any) -> Spec:
    missing = array.isna()
    missing = missing if missing.any() else None
    if array.dtype.storage == "pyarrow":
        return arrow_texts.put_texts(writer, array, missing)
    return objects.put_texts(writer, array.to_numpy(dtype=object), missing)


def _put_categories(writer: Writer, array: Any) -> Spec:
    if len(array.categories) > columns.MAX_CATEGORIES:
        raise NotHeld(f"has more than {columns.MAX_CATEGORIES:,} categories: use astype(str)")
    try:
        made = _put_codes(writer, array.categories, array.codes)
    except NotHeld as error:
        raise NotHeld(f"with its categories {error}") from None
    return {**made, "type": "categories", "ordered": bool(array.ordered)}


def _put_codes(writer: Writer, labels: Any, codes: Any) -> Spec:
    made = put_column(writer, labels)
    dtype = columns.put_array(writer, codes)["dtype"]
    return {"count": len(labels), "labels": made, "dtype": dtype}


def take_column(reader: Reader, spec: Any, rows: int) -> Any:
    """Read the values of one column.

    Raises:
        Broken: they are none.
    """
    kind = columns.field(spec, "type", str)
    read = _TAKEN.get(kind)
    if read is None:
        raise Broken("a column is of no known kind")
    return read(reader, spec, rows)


def _take_array(reader: Reader, spec: Spec, rows: int) -> Any:
    array = columns.take_array(reader, spec, rows)
    if array.dtype.kind in "US":
        raise Broken("a column has texts of a fixed length")
    if array.dtype.kind not in "mM":
        return array
    unit = columns.library("numpy").datetime_data(array.dtype)[0]
    if unit == "D":  # dates of polars; pandas knows no unit above a second
        return array.astype(array.dtype.str.replace("[D]", "[s]"))
    if unit not in _UNITS:
        raise Broken("a column of times has a unit that pandas does not know")
    return array


def _take_data(reader: Reader, spec: Spec, rows: int) -> Any:
    return objects.take_objects(reader, spec, rows)


def _take_text(reader: Reader, spec: Spec, rows: int) -> Any:
    kind = spec.get("as")
    if kind == "object":
        return objects.take_objects(reader, spec, rows)
    pandas = columns.library("pandas")
    lost = pandas.NA if kind == "string" else columns.library("numpy").nan
    dtype = pandas.StringDtype(na_value=lost)
    read = arrow_texts.take_texts if dtype.storage == "pyarrow" else objects.take_objects
    return pandas.array(read(reader, spec, rows), dtype=dtype, copy=False)


def _take_zoned(reader: Reader, spec: Spec, rows: int) -> Any:
    pandas = columns.library("pandas")
    zone = columns.take_zone(spec.get("zone"))
    array = _take_array(reader, spec, rows)
    if array.dtype.kind != "M":
        raise Broken("a column with a time zone has no times")
    return pandas.DatetimeIndex(array, copy=False).tz_localize("UTC").tz_convert(zone).array


def _take_masked(reader: Reader, spec: Spec, rows: int) -> Any:
    pandas = columns.library("pandas")
    array = columns.take_array(reader, spec, rows)
    missing = columns.take_mask(reader, rows)
    dtype = array.dtype.newbyteorder("=")
    if dtype.str == "<f2":  # of polars; pandas has no half floats with missing values
        dtype = columns.library("numpy").dtype("<f4")
    array = array.astype(dtype, copy=False)
    name = {"i": "IntegerArray", "u": "IntegerArray", "b": "BooleanArray", "f": "FloatingArray"}
    if dtype.kind not in name:
        raise Broken("a column with missing values is of a type that has none")
    return getattr(pandas.arrays, name[dtype.kind])(array, missing)


def _take_categories(reader: Reader, spec: Spec, rows: int) -> Any:
    pandas = columns.library("pandas")
    categories, codes = _take_codes(reader, spec, rows)
    if len(categories) > columns.MAX_CATEGORIES:
        raise Broken("a column has too many categories")
    dtype = pandas.CategoricalDtype(categories, columns.field(spec, "ordered", bool))
    return pandas.Categorical.from_codes(codes, dtype=dtype)


def _take_codes(reader: Reader, spec: Any, rows: int, *, nested: bool = False) -> tuple[Any, Any]:
    """Read labels, and for each row the number of one of them, or -1."""
    count = columns.take_count(spec, nested=nested)
    labels = _indexed(take_column(reader, spec["labels"], count), None)
    return labels, columns.take_codes(reader, spec, count, rows)


_TAKEN = {
    "array": _take_array,
    "data": _take_data,
    "text": _take_text,
    "zoned": _take_zoned,
    "masked": _take_masked,
    "categories": _take_categories,
}
