"""Documents in texts: JSON, lines of JSON, and tables with a header, read within limits.

Whoever wrote a text may have written it to be expensive, so that sizes come before parsing.
"""

import base64
import binascii
import csv
import html
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from divingbell.shares import weight

LONGEST_ROW = 1 << 18
"""Characters of one row of a table; it may go over several lines."""
LONGEST_HEADER = 1 << 14
MOST_TRIES = 16
"""Values over more than one line that are read in one text: each try may read all the rest."""
LONGEST_CELL = 1024
"""Characters of a cell of HTML that are read."""
DELIMITERS = ",;\t|"
_MARKUP = re.compile(r"<(/?\w*)[^<>]*>?|[^<]+")
_JSON_LINE = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
# Numbers as they are written: one of 5,000 digits is no reason to read nothing.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda _: None)
_LONGEST_NUMBER = 300
"""Digits of a number that is written again as one. Longer ones become texts."""


class TooMuch(Exception):
    """Raised where a text holds more than is read. Says what."""


def json_in(text: str) -> Iterator[Any]:
    """Yield the JSON in a text, wherever a line begins with it: one value, several, one a line.

    Raises:
        TooMuch: it is too heavy, or nested too deeply.
    """
    return (value for value, _, _ in _places(text, _DECODER))


def json_replaced(text: str, change: Callable[[Any], Any]) -> str:
    """Return a text with each value of JSON in it changed; one that stays the same stays as it is
    written.

    Raises:
        TooMuch: as `json_in`.
    """
    parts: list[str] = []
    at = 0
    for value, start, end in _places(text, _EXACT):
        changed = change(value)
        if changed != value:
            parts += text[at:start], json.dumps(changed, ensure_ascii=False)
            at = end
    return "".join((*parts, text[at:])) if parts else text


def _places(text: str, decoder: json.JSONDecoder) -> Iterator[tuple[Any, int, int]]:
    """Yield the values of JSON in a text, and where each begins and ends."""
    at = tries = 0
    text = text.replace("\ufeff", " ")  # as some programs begin a file
    while (start := _JSON_LINE.search(text, at)) is not None:
        first, end = start.end(), _end_of_line(text, start.end())
        found = _decoded(text[first:end], decoder)
        if found is None and tries < MOST_TRIES and end < len(text):
            tries += 1
            found = _decoded(text[first:], decoder)
        if found is None:
            at = end
        else:
            value, length = found
            yield value, first, first + length
            at = first + length


def text_in_base64(text: str) -> str:
    """Return the text that base64 stands for; empty if it stands for none."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def rows_in(text: str, delimiter: str = "") -> Iterator[list[str]]:
    """Yield the rows of a table, its header first.

    Raises:
        TooMuch: a row is longer than any is.
    """
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for line in io.StringIO(text, newline=""):
            taken += len(line)
            if taken > LONGEST_ROW:
                raise TooMuch("a row of the table is too long")
            yield line

    try:
        for row in csv.reader(lines(), delimiter=delimiter or delimiter_of(text)):
            taken = 0
            yield row
    except csv.Error as error:
        raise TooMuch(f"the table can't be read further: {error}") from None


def html_tables_in(text: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each table of HTML, its header first, as pandas shows a DataFrame."""
    rows: list[list[str]] = []
    is_cell = False
    for found in _MARKUP.finditer(text):
        tag = (found[1] or "").lower()
        if tag in ("table", "/table"):
            if rows:
                yield _cells_of(rows)
            rows = []
        elif tag == "/thead":
            rows = _one_header(rows)
        elif tag == "tr":
            rows.append([])
        elif tag in ("th", "td") and rows:
            rows[-1].append("")
        is_cell = tag in ("th", "td") or (is_cell and tag not in ("/th", "/td", "tr", "table"))
        if found[1] is None and is_cell and rows and len(rows[-1][-1]) < LONGEST_CELL:
            rows[-1][-1] += found[0][:LONGEST_CELL]
    if rows:
        yield _cells_of(rows)


def delimiter_of(text: str) -> str:
    """Return what stands between the cells of a table's first line; `,` if nothing does."""
    first = first_line(text)
    return max(DELIMITERS, key=first.count)


def first_line(text: str) -> str:
    """Return the first line of a text, as far as it may be the header of a table."""
    return text[:LONGEST_HEADER].lstrip("\ufeff\r\n").partition("\n")[0]


def _cells_of(rows: list[list[str]]) -> list[list[str]]:
    # polars writes texts with quotes around them.
    return [[html.unescape(cell[:LONGEST_CELL]).strip().strip('"') for cell in row] for row in rows]


def _one_header(rows: list[list[str]]) -> list[list[str]]:
    """One row for those of a header: pandas has the index's name in a second, polars the types."""
    first, second = rows[:1], rows[1:2]
    for names, more in zip(first, second, strict=False):
        return [[a.strip() or b for a, b in itertools.zip_longest(names, more, fillvalue="")]]
    return first


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _decoded(text: str, decoder: json.JSONDecoder) -> tuple[Any, int] | None:
    """The value that a text begins with, and where it ends."""
    data = text.encode("utf-8", "surrogatepass")
    if weight.weight_of(data, weight.MAX_RESULT) > weight.MAX_RESULT:
        raise TooMuch("the JSON holds more values than are read at once")
    try:
        return decoder.raw_decode(text)
    except RecursionError:
        raise TooMuch("the JSON is nested too deeply") from None
    except ValueError:
        return None


def _number(digits: str) -> Any:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits


def _fraction(digits: str) -> Any:
    number = float(digits)
    return number if math.isfinite(number) else digits


_EXACT = json.JSONDecoder(parse_int=_number, parse_float=_fraction)
