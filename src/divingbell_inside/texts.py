"""Columns of texts: UTF-8 in a row, where each of them begins, and which are missing.

They are written and read some at a time, so that no call of C takes long: nothing else of this
process runs meanwhile, in a thread or not. Shared by host and inside.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from divingbell_inside import columns
from divingbell_inside.columns import Broken, NotHeld, Piece, Reader, Spec, Writer

ROWS = 1 << 16
"""Texts in one go. Measured: each call of C takes 2 ms for them."""


def put_texts(writer: Writer, chunks: Iterable[list[Any]], missing: Any = None) -> Spec:
    """Write texts, which come in lists; where `missing` says so, what is there does not count.

    Raises:
        NotHeld: one of them is no text, or can't be written as UTF-8; or they are too many.
    """
    numpy = columns.library("numpy")
    pieces: list[Piece] = []
    lengths = [numpy.zeros(1, "<i8")]
    start = 0
    for chunk in chunks:
        writer.count_texts(len(chunk))
        if missing is not None:
            lost = missing[start : start + len(chunk)]
            chunk = ["" if is_lost else text for text, is_lost in zip(chunk, lost, strict=True)]
        encoded, sizes = _encoded(chunk)
        pieces.append(encoded)
        lengths.append(numpy.fromiter(sizes, "<i8", len(chunk)))
        start += len(chunk)
    writer.add(memoryview(numpy.cumsum(numpy.concatenate(lengths), dtype="<i8").view(numpy.uint8)))
    writer.add(*pieces)
    if missing is not None:
        columns.put_mask(writer, missing)
    return {"type": "text", "missing": missing is not None}


def _encoded(texts: list[Any]) -> tuple[bytes, Iterator[int]]:
    """Return texts as UTF-8 in a row, and the length of each."""
    if not set(map(type, texts)) <= {str}:
        raise NotHeld("has values that are no text: use astype(str)")
    joined = "".join(texts)
    if joined.isascii():
        return joined.encode(), map(len, texts)
    try:
        parts = [text.encode() for text in texts]
    except UnicodeEncodeError:
        raise NotHeld("has a text with half a character (a lone surrogate)") from None
    return b"".join(parts), map(len, parts)


def take_texts(reader: Reader, spec: Spec, count: int) -> tuple[Iterator[list[str]], Any]:
    """Read so many texts, in lists of ROWS; and which of them are missing, or None.

    Raises:
        Broken: the offsets lie, or the texts are no UTF-8; the latter when they are read.
    """
    reader.count_texts(count)
    offsets = columns.take_array(reader, {"dtype": "<i8"}, count + 1)
    raw = reader.take()
    missing = columns.take_mask(reader, count) if columns.field(spec, "missing", bool) else None
    if offsets[0] != 0 or offsets[-1] != len(raw) or (offsets[1:] < offsets[:-1]).any():
        raise Broken("the texts of a column overlap, or are not where the header says")
    return _texts(offsets, raw), missing


def _texts(offsets: Any, raw: memoryview) -> Iterator[list[str]]:
    for start in range(0, len(offsets) - 1, ROWS):
        bounds = offsets[start : start + ROWS + 1]
        first = int(bounds[0])
        chunk = bytes(raw[first : int(bounds[-1])])
        places = (bounds - first).tolist()
        try:
            if chunk.isascii():
                text = chunk.decode()
                yield [text[begin:end] for begin, end in pairwise(places)]
            else:
                yield [chunk[begin:end].decode() for begin, end in pairwise(places)]
        except UnicodeDecodeError:
            raise Broken("a text is not UTF-8") from None
