"""Columns of objects: texts and None, or other plain data. Shared by host and inside."""

from collections.abc import Iterator
from typing import Any

from divingbell_inside import columns, texts, values
from divingbell_inside.columns import Broken, NotHeld, Reader, Spec, Writer

PART = 1 << 16
"""Bytes of plain data in a part, of which only a single item may have more: nothing else of this
process runs while one is parsed."""


def put_plain(writer: Writer, items: list[Any]) -> Spec:
    """Write plain data in parts of a bounded size.

    Raises:
        NotPlain: one of the items is none (`divingbell_inside.values`).
    """
    parts = 0
    row: list[bytes] = []
    size = 0
    for number, item in enumerate(items):
        try:
            # A part is read as one value, and the list that it is counts as an item.
            written = values.to_json(item, items=values.MAX_ITEMS - 1)
        except values.NotPlain as error:
            raise error.within(f"[{number}]") from None
        if row and size + len(written) > PART:
            writer.add(b"[" + b",".join(row) + b"]")
            parts, row, size = parts + 1, [], 0
        row.append(written)
        size += len(written)
    if row:
        writer.add(b"[" + b",".join(row) + b"]")
    return {"type": "data", "parts": parts + bool(row)}


def take_plain(reader: Reader, spec: Spec, count: int) -> list[Any]:
    """Read plain data.

    Raises:
        Broken: it is none, or has another number of items.
    """
    found: list[Any] = []
    for _ in range(columns.field(spec, "parts", int)):
        part = reader.take_json()
        if type(part) is not list or not part:
            raise Broken("a part of plain data is no list")
        found += part
    if len(found) != count:
        raise Broken("plain data has another length than the header says")
    return found


def put_objects(writer: Writer, objects: Any) -> Spec:
    """Write an array of objects: texts and None, or other plain data.

    Raises:
        NotHeld: something in it is neither.
    """
    numpy = columns.library("numpy")
    items = objects.tolist()
    kinds = set(map(type, items))
    if kinds <= {str, type(None)}:
        missing = None
        if type(None) in kinds:
            missing = numpy.fromiter((item is None for item in items), bool, len(items))
        return put_texts(writer, objects, missing)
    try:
        return put_plain(writer, items)
    except values.NotPlain as error:
        raise NotHeld(
            f"holds something at {error.place} that {error.reason}: use astype()"
        ) from None


def put_texts(writer: Writer, objects: Any, missing: Any) -> Spec:
    """Write an array of objects that are texts, but where `missing`, if it is given, says so.

    Raises:
        NotHeld: one is no text, or can't be written as UTF-8; or they are too many.
    """
    return texts.put_texts(writer, _chunks(objects, missing), missing)


def _chunks(objects: Any, missing: Any) -> Iterator[list[Any]]:
    for start in range(0, len(objects), texts.ROWS):
        rows = slice(start, start + texts.ROWS)
        chunk = objects[rows]
        if missing is not None:
            chunk = columns.library("numpy").where(missing[rows], "", chunk)
        yield chunk.tolist()


def take_objects(reader: Reader, spec: Spec, count: int) -> Any:
    """Read an array of objects.

    Raises:
        Broken: it is none.
    """
    numpy = columns.library("numpy")
    if spec.get("type") != "text":
        return numpy.fromiter(take_plain(reader, spec, count), object, count)
    chunks, missing = texts.take_texts(reader, spec, count)
    found = numpy.empty(count, object)
    at = 0
    for chunk in chunks:
        found[at : at + len(chunk)] = chunk
        at += len(chunk)
    if missing is not None:
        found[missing] = None
    return found
