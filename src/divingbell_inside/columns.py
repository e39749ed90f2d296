"""The column file: arrays, texts and plain data as a short JSON header and raw buffers.

Host and inside share this file, and both read what the other has written. It needs numpy for
arrays, nothing for plain data. A reader believes no length and no offset: each is checked before
it is used, so a file that hostile code has forged ends in `Broken` and in nothing else.

A file is MAGIC, the length of the header, the header, and the buffers in the order in which the
header's columns name them. Each buffer begins at a multiple of ALIGNMENT. All numbers in the
header's own parts are little-endian.
"""

import datetime
import importlib
import json
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from divingbell_inside import frames, values

MAGIC = b"DBCOLS1\n"
ALIGNMENT = 64
MAX_HEADER = frames.MAX_HEADER
"""Bytes. A frame of some 25,000 columns has as much."""
MAX_LENGTH = 1 << 48
MAX_DIMENSIONS = 32
MAX_ZONE = 64
MAX_TEXTS = 20_000_000
"""Texts in one value. Each is an object of some 60 bytes, whatever it takes in the file."""
MAX_CATEGORIES = 1 << 16
"""Of a column. They are hashed, and numbers can be chosen so that all have the same hash."""
_START = len(MAGIC) + 8
_PLAIN = re.compile(
    r"\|[biu]1|[<>][iu][248]|[<>]f[248]|[<>]c(?:8|16)"
    r"|[<>][mM]8\[(?:[YMWDhms]|ms|us|ns|ps|fs|as)\]|[<>]U[1-9]\d{0,5}|\|S[1-9]\d{0,5}"
)

Spec = dict[str, Any]
"""The part of the header that says what one column is."""
Piece = bytes | memoryview


class NotHeld(ValueError):
    """Raised for a value that a column file can't hold; the message says what to do."""


class Broken(ValueError):
    """Raised for a file that breaks the rules."""


def library(name: str) -> Any:
    """Return numpy, pandas, polars or pyarrow.

    Raises:
        NotHeld: it is not installed here.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotHeld(
            f"{name} is not installed here ({error}): install it, and try again"
        ) from None


class Writer:
    """The buffers of a file that is being written."""

    def __init__(self) -> None:
        self._buffers: list[list[Piece]] = []
        self._texts = 0

    def add(self, *pieces: Piece) -> None:
        """Add one buffer, which may come in pieces."""
        self._buffers.append([piece for piece in pieces if len(piece)])

    def count_texts(self, count: int) -> None:
        """Count texts that are about to be written: a reader would refuse more.

        Raises:
            NotHeld: they are too many.
        """
        self._texts += count
        if self._texts > MAX_TEXTS:
            raise NotHeld(f"has too many texts, {MAX_TEXTS:,} may be in a value: pass a part of it")

    def pieces(self, header: Spec) -> list[Piece]:
        """Return the whole file, in pieces that are not copied.

        Raises:
            NotHeld: the header is too long.
        """
        sizes = [sum(map(len, pieces)) for pieces in self._buffers]
        text = json.dumps({**header, "buffers": sizes}, separators=(",", ":")).encode()
        if len(text) > MAX_HEADER:
            raise NotHeld(
                f"it has too many columns: their description has {len(text):,} bytes, "
                f"{MAX_HEADER:,} are allowed; cut it into several"
            )
        made: list[Piece] = [MAGIC + len(text).to_bytes(8, "little") + text]
        made.append(bytes(_gap(_START + len(text))))
        for pieces, size in zip(self._buffers, sizes, strict=True):
            made += [*pieces, bytes(_gap(size))]
        return [piece for piece in made if len(piece)]


def _gap(size: int) -> int:
    return -size % ALIGNMENT


class Reader:
    """A file that is being read: its header, and its buffers one after the other.

    `check` sees JSON before it is parsed, and may raise NotHeld.
    """

    def __init__(self, data: bytearray, check: Callable[[bytes], None] = lambda raw: None) -> None:
        self._data = memoryview(data)
        self._check = check
        self._texts = 0
        length = int.from_bytes(self._data[len(MAGIC) : _START], "little")
        if bytes(self._data[: len(MAGIC)]) != MAGIC or length > MAX_HEADER:
            raise Broken("it does not begin as a column file does")
        raw = bytes(self._data[_START : _START + length])
        check(raw)
        try:
            self.header = frames.parse(raw)
        except frames.FrameError as error:
            raise Broken(str(error)) from None
        self._sizes = iter(self._checked_sizes(_START + length))
        self._at = _START + length + _gap(_START + length)

    def _checked_sizes(self, start: int) -> list[int]:
        sizes = self.header.get("buffers")
        if type(sizes) is not list or not all(is_length(size) for size in sizes):
            raise Broken("the lengths of its buffers are missing")
        total = start + _gap(start) + sum(size + _gap(size) for size in sizes)
        if total != len(self._data):
            raise Broken("it is shorter or longer than its header says")
        return sizes

    def take(self) -> memoryview:
        """Return the next buffer."""
        size = next(self._sizes, None)
        if size is None:
            raise Broken("a column has no buffer")
        start, self._at = self._at, self._at + size + _gap(size)
        return self._data[start : start + size]

    def take_json(self) -> Any:
        """Return the plain data of the next buffer."""
        raw = bytes(self.take())
        self._check(raw)
        try:
            return values.from_json(raw)
        except values.InvalidData as error:
            raise Broken(str(error)) from None

    def count_texts(self, count: int) -> None:
        """Count texts that are about to be made.

        Raises:
            Broken: they are too many.
        """
        self._texts += count
        if self._texts > MAX_TEXTS:
            raise Broken(f"it has more than {MAX_TEXTS:,} texts: get a part of it")

    def finish(self) -> None:
        """Check that nothing is left over."""
        if next(self._sizes, None) is not None:
            raise Broken("it has more buffers than columns")


def is_length(value: Any) -> bool:
    """Whether a value of a hostile header is a length."""
    return type(value) is int and 0 <= value <= MAX_LENGTH


def field(spec: Any, name: str, kind: type) -> Any:
    """Return a field of a hostile header.

    Raises:
        Broken: it is missing, or of another type.
    """
    value = spec.get(name) if type(spec) is dict else None
    if type(value) is not kind:
        raise Broken(f"the header says nothing that can be used about {name!r}")
    return value


def length(spec: Any, name: str) -> int:
    """Return a field that is a length.

    Raises:
        Broken: it is none.
    """
    size: int = field(spec, name, int)
    if not is_length(size):
        raise Broken(f"{name!r} is no length")
    return size


def take_attributes(header: Spec) -> dict[Any, Any]:
    """Return the attributes of a frame or a series.

    Raises:
        Broken: there are none.
    """
    try:
        attributes = values.decode(header.get("attrs"))
    except values.InvalidData:
        attributes = None
    if type(attributes) is not dict:
        raise Broken("the attributes are none")
    return attributes


# Arrays of numbers


def put_array(writer: Writer, array: Any) -> Spec:
    """Write an array of numbers, times or fixed texts.

    Raises:
        NotHeld: it is of another type.
    """
    numpy = library("numpy")
    if not _PLAIN.fullmatch(array.dtype.str):
        raise NotHeld(f"has the type {str(array.dtype)[:60]}, which is no plain one: use astype()")
    flat = numpy.ascontiguousarray(array).reshape(-1)
    writer.add(memoryview(flat.view(numpy.uint8)))
    return {"type": "array", "dtype": array.dtype.str}


def take_array(reader: Reader, spec: Spec, count: int) -> Any:
    """Read an array that has so many items.

    Raises:
        Broken: it has not, or its bytes are no values of its type.
    """
    numpy = library("numpy")
    name = field(spec, "dtype", str)
    if not _PLAIN.fullmatch(name):
        raise Broken("an array has a type that is no plain one")
    dtype = numpy.dtype(name)
    raw = reader.take()
    if len(raw) != count * dtype.itemsize:
        raise Broken("an array is shorter or longer than the header says")
    array = numpy.frombuffer(raw, dtype)
    if dtype.kind == "b" and count and array.view(numpy.uint8).max() > 1:
        raise Broken("a truth value is neither true nor false")
    if dtype.kind == "U" and count:
        points = array.view(dtype.str[0] + "u4")
        if points.max() > 0x10FFFF or ((points >= 0xD800) & (points <= 0xDFFF)).any():
            raise Broken("a text has characters that do not exist")
    return array


def put_mask(writer: Writer, missing: Any) -> None:
    """Write which of the values are missing."""
    put_array(writer, missing)


def take_mask(reader: Reader, count: int) -> Any:
    """Read which of the values are missing."""
    return take_array(reader, {"dtype": "|b1"}, count)


def take_count(spec: Any, *, nested: bool = False) -> int:
    """Return the number of labels of a column that refers to them by codes.

    Those of a level of an index may be categories, which are such a column themselves: `nested`.
    Those of categories may not, so it goes no deeper.

    Raises:
        Broken: there is none, or the labels are such a column and may not be.
    """
    kind = field(field(spec, "labels", dict), "type", str)
    if kind == "categories" and not nested:
        raise Broken("labels refer to labels")
    return length(spec, "count")


def take_codes(reader: Reader, spec: Spec, count: int, rows: int) -> Any:
    """Read for each row the number of one of so many labels, or -1.

    Raises:
        Broken: there is no such label.
    """
    codes = take_array(reader, spec, rows)
    if codes.dtype.kind != "i" or (rows and not -1 <= codes.min() <= codes.max() < count):
        raise Broken("a column refers to labels that it has not")
    return codes


# Time zones


def put_zone(zone: datetime.tzinfo) -> Any:
    """Return a time zone as JSON.

    Raises:
        NotHeld: it has no name that others know.
    """
    if type(zone) is zoneinfo.ZoneInfo and zone.key:
        return zone.key
    if type(zone) is datetime.timezone:
        return zone.utcoffset(None) // datetime.timedelta(microseconds=1)
    raise NotHeld("has a time zone without a name that others know: use tz_convert('UTC')")


def take_zone(written: Any) -> datetime.tzinfo:
    """Return the time zone that was written.

    Raises:
        Broken: it is no name, and no offset, of any.
        NotHeld: this machine has none of that name.
    """
    try:
        if type(written) is int:
            return datetime.timezone(datetime.timedelta(microseconds=written))
        if type(written) is str and 0 < len(written) <= MAX_ZONE:
            return zoneinfo.ZoneInfo(written)
    except zoneinfo.ZoneInfoNotFoundError:
        raise NotHeld("has a time zone that is not known here: use tz_convert('UTC')") from None
    except (ValueError, OSError, OverflowError) as error:
        raise Broken(f"a time zone is not known here: {error}") from None
    raise Broken("a time zone has no name")
