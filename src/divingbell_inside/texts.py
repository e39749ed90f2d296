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
SIZE = 4 << 20
"""Bytes that are read in one go, of which only a single text may have more."""
SEPARATORS = "\x1f\x1e\x00"
"""Characters of which one stands in no text, as a rule. With it between them texts are one text,
which C joins and cuts. Measured: that takes half of the time of one by one."""
LONG = 200
"""Bytes of texts, on average, above which one by one is faster."""


def put_texts(writer: Writer, chunks: Iterable[list[Any]], missing: Any = None) -> Spec:
    """Write texts, which come in lists; where `missing` says so, they are empty.

    Raises:
        NotHeld: one of them is no text, or can't be written as UTF-8; or they are too many.
    """
    pieces: list[Piece] = []
    lengths = []
    for chunk in chunks:
        writer.count_texts(len(chunk))
        encoded, sizes = _encoded(chunk)
        pieces.append(encoded)
        lengths.append(sizes)
    return put_buffers(writer, lengths, pieces, missing)


def put_buffers(writer: Writer, lengths: list[Any], pieces: list[Piece], missing: Any) -> Spec:
    """Write texts that are UTF-8 in a row already; the length of each comes in arrays."""
    numpy = columns.library("numpy")
    offsets = numpy.cumsum(numpy.concatenate([numpy.zeros(1, "<i8"), *lengths]), dtype="<i8")
    writer.add(memoryview(offsets.view(numpy.uint8)))
    writer.add(*pieces)
    if missing is not None:
        columns.put_mask(writer, missing)
    return {"type": "text", "missing": missing is not None}


def _encoded(texts: list[Any]) -> tuple[bytes, Any]:
    """Return texts as UTF-8 in a row, and the length of each."""
    if not set(map(type, texts)) <= {str}:
        raise NotHeld("has values that are no text: use astype(str)")
    try:
        raw = "".join(texts).encode()
    except UnicodeEncodeError:
        raise NotHeld("has a text with half a character (a lone surrogate)") from None
    return raw, _lengths(texts, raw)


def _lengths(texts: list[str], raw: bytes) -> Any:
    """Return how many bytes each text has of those that they are in a row."""
    numpy = columns.library("numpy")
    separator = _separator(raw, len(texts))
    if separator is None:
        return numpy.fromiter(map(len, map(str.encode, texts)), "<i8", len(texts))
    joined = separator.join(texts).encode()
    places = numpy.flatnonzero(numpy.frombuffer(joined, numpy.uint8) == ord(separator))
    return numpy.diff(places, prepend=-1, append=len(joined)) - 1


def _separator(raw: bytes, count: int) -> str | None:
    """Return a character that stands in none of so many texts, to be put between them.

    None if there is no such character, or no text; or if they are long.
    """
    if len(raw) >= LONG * count:
        return None
    return next((each for each in SEPARATORS if each.encode() not in raw), None)


def take_texts(reader: Reader, spec: Spec, count: int) -> tuple[Iterator[list[str]], Any]:
    """Read so many texts, in lists of ROWS at most; and which of them are missing, or None.

    Raises:
        Broken: the offsets lie, or the texts are no UTF-8; the latter when they are read.
    """
    offsets, raw, missing = take_buffers(reader, spec, count)
    return _texts(offsets, raw), missing


def take_buffers(reader: Reader, spec: Spec, count: int) -> tuple[Any, memoryview, Any]:
    """Read where each of so many texts begins and the last one ends, all of them in a row, and
    which are missing, or None. Whether they are UTF-8 is not checked.

    Raises:
        Broken: the offsets lie.
    """
    reader.count_texts(count)
    offsets = columns.take_array(reader, {"dtype": "<i8"}, count + 1)
    raw = reader.take()
    missing = columns.take_mask(reader, count) if columns.field(spec, "missing", bool) else None
    if offsets[0] != 0 or offsets[-1] != len(raw) or (offsets[1:] < offsets[:-1]).any():
        raise Broken("the texts of a column overlap, or are not where the header says")
    return offsets, raw, missing


def _texts(offsets: Any, raw: memoryview) -> Iterator[list[str]]:
    start, count = 0, len(offsets) - 1
    while start < count:
        fitting = int(offsets.searchsorted(offsets[start] + SIZE, "right")) - 1
        end = max(start + 1, min(start + ROWS, fitting, count))
        bounds = offsets[start : end + 1]
        chunk = bytes(raw[int(bounds[0]) : int(bounds[-1])])
        try:
            yield _cut(chunk, bounds - bounds[0])
        except UnicodeDecodeError:
            raise Broken("a text is not UTF-8") from None
        start = end


def _cut(chunk: bytes, places: Any) -> list[str]:
    """Return the texts that lie between these places.

    A separator within a character makes both halves of it invalid, as they are by themselves.
    """
    separator = _separator(chunk, len(places) - 1)
    if separator is None:
        return [chunk[begin:end].decode() for begin, end in pairwise(places.tolist())]
    numpy = columns.library("numpy")
    raw = numpy.frombuffer(chunk, numpy.uint8)
    return str(numpy.insert(raw, places[1:-1], ord(separator)), "utf-8").split(separator)
