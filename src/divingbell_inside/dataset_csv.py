"""CSV files as people have them: in other encodings, and with lines that are odd.

DuckDB guesses how a file is written by what fits it best. One line of five fields below three
hundred of three makes it take that line for the table, or all of it for a single column, without a
word. So the start of a file is looked at here as well. Where the two differ the file is written
once more, with as many fields in each line, and what was done to it is said.
"""

import contextlib
import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TextIO

SAMPLE, MOST_RECORDS = 1 << 20, 1000
"""Bytes and records of the start of a file that are looked at."""
MOST_FIELD = 16 << 20
"""Characters of one field."""
MOST_LINES = 1000
"""Lines of one record: more of them are a quote that nobody has closed."""
MOST_BEYOND = 20
"""Fields that a line may have more than others, and are kept."""
NAMED = 5
"""Odd lines that are named."""
DELIMITERS = (",", ";", "\t", "|")
UTF_8, WINDOWS, UTF_16 = "utf-8-sig", "cp1252", "utf-16"


class Broken(Exception):
    """Raised for a file that can't be read; the message says where."""


class Shape(NamedTuple):
    """One way to read a file: by what fields are separated, and how many most lines have."""

    delimiter: str
    width: int
    share: float
    """Of the lines that have so many."""
    above: int
    """Records before the first that has so many: a title, remarks."""
    odd: int | None
    """The first line that has another number of fields, of those that were looked at."""


class Look(NamedTuple):
    """What the start of a file tells."""

    encoding: str
    shapes: tuple[Shape, ...]
    """The best first. None where most lines have one field."""

    def is_right(self, width: int, above: int) -> bool:
        """Whether a table of so many columns, which begins below so many lines, can be right."""
        if not self.shapes:
            return True
        if self.shapes[0].above:  # a title; or a column of sentences that mostly have a comma
            return width == self.shapes[0].width or (width, self.shapes[0].width) == (1, 2)
        best = (shape.width for shape in self.shapes if shape.share == self.shapes[0].share)
        return width in best and above == 0


def look(path: str, format: str) -> Look:
    """Look at the start of a file."""
    with open(path, "rb") as file:
        start = file.read(SAMPLE)
    is_whole = len(start) < SAMPLE
    encoding = _encoding(start, is_whole)
    text = start.decode(encoding, "replace")
    delimiters = ("\t",) if format == "tsv" else DELIMITERS
    found = [_shape(text, delimiter, is_whole) for delimiter in delimiters]
    shapes = sorted((shape for shape in found if shape), key=lambda each: -each.share)
    return Look(encoding, tuple(sorted(shapes, key=lambda each: each.above > 0)))


def _encoding(start: bytes, is_whole: bool) -> str:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return UTF_16
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may be cut in two.
        if is_whole or error.start < len(start) - 3:
            return WINDOWS
    return UTF_8


def _shape(text: str, delimiter: str, is_whole: bool) -> Shape | None:
    records = _records(io.StringIO(text, newline=""), delimiter)
    found: list[tuple[int, list[str]]] = []
    with contextlib.suppress(Broken):  # whoever reads all of it is told
        found.extend(itertools.islice(records, MOST_RECORDS))
    if not is_whole and len(found) < MOST_RECORDS:
        del found[-1:]  # it may be cut off
    lengths = [len(record) for _, record in found]
    if not lengths:
        return None
    [(width, count)] = Counter(lengths).most_common(1)
    share = count / len(lengths)
    if width < 2 or share < 0.5:
        return None
    odd = next((line for line, record in found if len(record) != width), None)
    return Shape(delimiter, width, share, lengths.index(width), odd)


def _records(file: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield what is in a file: the line that each record begins in, and its fields.

    Raises:
        Broken: a quote is not closed, or a field is too long.
    """
    csv.field_size_limit(MOST_FIELD)
    reader = csv.reader(file, delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if reader.line_num - line > MOST_LINES:
                raise Broken(f"a quote that opens in line {line:,} is not closed")
            if record:
                yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise Broken(f"line {line:,} can't be read: {error}") from None


def mend(path: str, found: Look, to: str) -> str:
    """Write a file once more, in UTF-8 and with as many fields in each line; return what was done.

    Raises:
        Broken: it can't be read.
    """
    shape = found.shapes[0]
    odd, lines, widest = 0, [], shape.width
    for line, record in _table(path, found):
        if len(record) != shape.width:
            odd, widest = odd + 1, max(widest, len(record))
            lines += [f"{line:,}"] if odd <= NAMED else []
    kept = min(widest, shape.width + MOST_BEYOND)
    with open(to, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, (_, record) in enumerate(_table(path, found)):
            filling = _header if number == 0 and all(map(_is_word, record)) else _nothing
            writer.writerow([*record[:kept], *filling(len(record), kept)])
    remarks = []
    if found.encoding != UTF_8:
        remarks.append(f"it is no text in UTF-8 and was read as {found.encoding}")
    if shape.above:
        remarks.append(f"what stands above the table, {shape.above:,} lines, was left out")
    if odd:
        more = " …" if odd > NAMED else ""
        beyond = f"; fields beyond {kept:,} were left out" if widest > kept else ""
        remarks.append(
            f"{odd:,} of its lines (line {', '.join(lines)}{more}) {'has' if odd == 1 else 'have'} "
            f"more or fewer than {shape.width:,} fields: what lacks is missing, and what is more "
            f"is in columns of its own{beyond}"
        )
    return "; ".join(remarks)


def _header(there: int, kept: int) -> list[str]:
    return [f"column{place}" for place in range(there, kept)]


def _nothing(there: int, kept: int) -> list[str]:
    return [""] * (kept - there)


def _is_word(field: str) -> bool:
    """Whether a field may be the name of a column."""
    return bool(field.strip()) and not any(sign.isdigit() for sign in field.strip()[:1])


def _table(path: str, found: Look) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a file from the header on."""
    with open(path, encoding=found.encoding, errors="replace", newline="") as file:
        records = _records(file, found.shapes[0].delimiter)
        yield from itertools.islice(records, found.shapes[0].above, None)
