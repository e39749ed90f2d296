"""Any value that can be passed between host and session, as a column file, and back.

Plain data, numpy arrays, and frames and series of pandas and polars. Only exact types count, and
nothing that a value says of itself: `__class__`, `__array__` and their like are never asked. Shared
by host and inside.
"""

import codecs
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from divingbell_inside import columns, objects, pandas_tables, polars_tables, values
from divingbell_inside.columns import Broken, NotHeld, Piece, Reader, Spec, Writer

LIBRARIES = ("pandas", "polars")
TEXT_PIECE = 4 << 20
_NAME_OF_TYPE = type.__dict__["__name__"]
_TABLES = {"pandas": pandas_tables, "polars": polars_tables}


def pack(value: Any) -> list[Piece]:
    """Return a value as a column file, in pieces that are not copied.

    Raises:
        NotHeld: it is of a type that can't be passed; the message says what to do.
    """
    writer = Writer()
    kind = type(value)
    for name in LIBRARIES:
        module = sys.modules.get(name)
        if kind is getattr(module, "DataFrame", None):
            return writer.pieces({**_TABLES[name].put_frame(writer, value), "library": name})
        if kind is getattr(module, "Series", None):
            return writer.pieces({**_TABLES[name].put_series(writer, value), "library": name})
    try:
        return writer.pieces(_put_value(writer, value))
    except values.TooLarge as error:
        place = f" at {error.place}" if error.place else ""
        raise NotHeld(f"the value{place} {error.reason}: pass its parts, or a DataFrame") from None
    except values.NotPlain as error:
        raise NotHeld(f"the value {_advice(kind, error)}") from None
    except NotHeld as error:
        raise NotHeld(f"the value {error}") from None


def _put_value(writer: Writer, value: Any) -> Spec:
    kind = type(value)
    if kind is str:
        return _put_text(writer, value)
    if kind is bytes:
        writer.add(value)
        return {"kind": "bytes"}
    if kind is getattr(sys.modules.get("numpy"), "ndarray", None):
        return _put_array(writer, value)
    return _put_plain(writer, value)


def _put_text(writer: Writer, value: str) -> Spec:
    try:
        writer.add(value.encode())
    except UnicodeEncodeError:
        raise NotHeld("is a text with half a character (a lone surrogate)") from None
    return {"kind": "text"}


def _put_array(writer: Writer, array: Any) -> Spec:
    if array.dtype.kind == "O":
        column = objects.put_objects(writer, array.reshape(-1))
    else:
        column = columns.put_array(writer, array)
    return {"kind": "array", "shape": list(array.shape), "column": column}


def _put_plain(writer: Writer, value: Any) -> Spec:
    """Write plain data; a list may be of any length, because it is read in parts."""
    is_list = type(value) is list
    items = value if is_list else [value]
    try:
        column = objects.put_plain(writer, items)
    except values.NotPlain as error:
        error.place = error.place if is_list else error.place.removeprefix("[0]")
        raise
    return {"kind": "list" if is_list else "plain", "count": len(items), "column": column}


def _advice(kind: type, error: values.NotPlain) -> str:
    if error.place:
        return f"has something at {error.place} that {error.reason}: make plain data of it first"
    for base in kind.__mro__[1:]:
        name = _NAME_OF_TYPE.__get__(base)
        if name in ("DataFrame", "Series", "ndarray"):
            of = _NAME_OF_TYPE.__get__(kind)
            return f"is a {of}, a kind of {name}: make a plain {name} of it first"
    return (
        f"{error.reason}: what can be passed is plain data (numbers, text, lists, dicts, dates …), "
        "numpy arrays, DataFrames and Series"
    )


def unpack(reader: Reader, libraries: Sequence[str] = ()) -> Any:
    """Return the value of a column file; frames and series are of the first of these libraries that
    is installed.

    Without any it is the library of whoever has written it, or else the one that is there.

    Raises:
        Broken: it is no column file.
        NotHeld: a library is missing, or has no such column.
    """
    kind = columns.field(reader.header, "kind", str)
    try:
        value = _taken(reader, kind, libraries)
    except (Broken, NotHeld, MemoryError):
        raise
    except Exception as error:
        # Of numpy, pandas or polars: what was checked is still no value of theirs.
        raise Broken(f"it can't be read: {error}"[:300]) from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of polars; it would end whoever called
            raise Broken("it can't be read: polars gave up on it") from None
        raise
    reader.finish()
    return value


def _decoded(raw: memoryview) -> str:
    """Return a text, read in pieces: nothing else in the process runs while one is decoded."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    pieces = [
        decoder.decode(bytes(raw[start : start + TEXT_PIECE]))
        for start in range(0, len(raw), TEXT_PIECE)
    ]
    return "".join([*pieces, decoder.decode(b"", final=True)])


def _taken(reader: Reader, kind: str, libraries: Sequence[str]) -> Any:
    header = reader.header
    if kind == "text":
        return _decoded(reader.take())
    if kind == "bytes":
        return bytes(reader.take())
    if kind == "array":
        return _take_array(reader)
    if kind in ("list", "plain"):
        count = columns.field(header, "count", int)
        items = objects.take_plain(reader, columns.field(header, "column", dict), count)
        if kind == "list":
            return items
        [value] = items
        return value
    if kind not in ("frame", "series"):
        raise Broken("it is of no known kind")
    tables = _TABLES[_installed(libraries or (columns.field(header, "library", str), *LIBRARIES))]
    return tables.take_frame(reader) if kind == "frame" else tables.take_series(reader)


def _take_array(reader: Reader) -> Any:
    shape = columns.field(reader.header, "shape", list)
    if len(shape) > columns.MAX_DIMENSIONS or not all(columns.is_length(size) for size in shape):
        raise Broken("the shape of an array is none")
    count = 1
    for size in shape:
        count *= size
    column = columns.field(reader.header, "column", dict)
    if column.get("type") == "array":
        return columns.take_array(reader, column, count).reshape(shape)
    return objects.take_objects(reader, column, count).reshape(shape)


def _installed(libraries: Sequence[Any]) -> str:
    wanted = [name for name in dict.fromkeys(libraries) if name in LIBRARIES]
    for name in wanted:
        if _is_installed(name):
            return str(name)
    raise NotHeld(f"it is a table, and {' nor '.join(wanted)} is not installed here: install one")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
