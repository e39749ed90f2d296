"""Tables in what a session shows, as pandas and polars write them, CSV with a header, and dicts and
records as Python does.

Nobody says where such a table begins. It is taken for one where lines are of one length and cells
end below the ends of the names, as they do in pandas, or where polars has drawn its lines. Whoever
prints may have made a text to be expensive: each line is read once for its own sake, and once for
each personal column.
"""

import csv
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LONGEST_LINE = 2_000
"""Characters of a line that may be a row."""
MOST_COLUMNS = 32
"""Personal columns of one table."""
MOST_WORDS = 3
"""Words of the name of a column that are read together."""
_HEADER = re.compile(rf"^ [^\n]{{1,{LONGEST_LINE}}}$", re.MULTILINE)
_SERIES = re.compile(r"^(?:Name: ([^\n]{1,200}?), )?(?:Length: \d+, )?dtype: \w+", re.MULTILINE)
_POLARS_SERIES = re.compile(r"^Series: '([^'\n]{1,200})' \[[^\n]{1,200}\]\n\[\n", re.MULTILINE)
_DRAWN = re.compile(r"^│ ([^\n]*) │$", re.MULTILINE)
_BETWEEN = re.compile(" [┆│] ")
_PAIR = re.compile(r"""(['"])(\w[\w .-]{0,80})\1: (?:'([^'\n]{1,500})'|"([^"\n]{1,500})")""")
_MEMBER = re.compile(r"""(?<!\w)(\w{1,80})=(?:'([^'\n]{1,500})'|"([^"\n]{1,500})")""")
_NAMED = r"[^\W\d][\w .-]{0,60}"
_CSV_HEADER = re.compile(
    rf"""^\ufeff?(?:"?{_NAMED}"?)?(?:[,;\t|] ?"?{_NAMED}"?){{1,60}}\r?$""", re.MULTILINE
)
LEAST_NAME = 3
"""Characters of the name of a column of CSV."""
_WORD = re.compile(r"\S+")
_NO_NAME = re.compile(r"[^\w. -]|  ")
_LABEL = re.compile(r"(.*?\S) {4,}(\S.*)")

Named = tuple[str, str]
"""The name of a column, and what a cell of it says."""
IsPersonal = Callable[[str], bool]
"""Says whether a column of this name may hold something personal."""


class _Column(NamedTuple):
    """A column of pandas."""

    name: str
    start: int
    """Where the one before it ends."""
    end: int
    """Where its cells end in their lines; 0 for the index, which stands at the left."""


def may_be_in(text: str) -> bool:
    """Say whether a text may hold a table or dict; quick, and often wrong where it says yes."""
    if "': " in text or '": ' in text or "='" in text or '="' in text:
        return True
    return "\n" in text and (
        "<table" in text
        or "│ " in text
        or "dtype: " in text
        or "Series: '" in text
        or text.startswith(" ")
        or "\n " in text
        or _CSV_HEADER.search(text) is not None
    )


def cells_in(text: str, is_personal: IsPersonal) -> Iterator[Named]:
    """Yield the cells of personal columns, and the texts below personal names."""
    for pair in _PAIR.finditer(text):
        if is_personal(pair[2]):
            yield pair[2], pair[3] or pair[4]
    for member in _MEMBER.finditer(text):
        if is_personal(member[1]):
            yield member[1], member[2] or member[3]
    yield from _csv_in(text, is_personal)
    if "dtype: " in text:
        yield from _series_in(text, is_personal)
    if "Series: '" in text:
        yield from _listed_in(text, is_personal)
    if "│ " in text:
        yield from _drawn_in(text, is_personal)
    at = 0
    while (header := _HEADER.search(text, at)) is not None:
        at = header.end()
        for length, cells in _rows(header[0], _lines(text, at + 1), is_personal):
            at += length + 1
            yield from cells


def _csv_in(text: str, is_personal: IsPersonal) -> Iterator[Named]:
    """CSV with a header: its rows have as many cells."""
    at = 0
    while (header := _CSV_HEADER.search(text, at)) is not None:
        delimiter = max(",;\t|", key=header[0].count)
        names = [name.strip(' "\r\ufeff') for name in header[0].split(delimiter)]
        chosen = [
            (place, name)
            for place, name in enumerate(names)
            if len(name) >= LEAST_NAME and is_personal(name)
        ][:MOST_COLUMNS]
        at = header.end() + 1
        for line in _lines(text, at) if chosen else ():
            cells = _csv_cells(line, delimiter)
            if len(cells) != len(names):
                break
            at += len(line) + 1
            yield from ((name, cells[place].strip()) for place, name in chosen)


def _csv_cells(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        return line.split(delimiter)
    return next(csv.reader([line.replace("\r", " ")], delimiter=delimiter), [])


def _rows(
    header: str, lines: Iterator[str], is_personal: IsPersonal
) -> Iterator[tuple[int, list[Named]]]:
    """Yield of each row of a table of pandas how long it is, and its personal cells."""
    first, index = next(lines, ""), ""
    ends = [word.end() for word in _WORD.finditer(header)]
    if len(first) == len(header) and not any(_ends_at(first, end) for end in ends):
        index, first = first.strip(), next(lines, "")
        yield len(header), []
    if len(first) != len(header):
        return
    chosen = [each for each in _columns(header, first, index) if is_personal(each.name)]
    for line in itertools.chain([first], lines) if chosen else ():
        if len(line) != len(header):
            return
        yield len(line), list(_cells(line, chosen[:MOST_COLUMNS]))


def _lines(text: str, at: int) -> Iterator[str]:
    """The lines from there on, up to one that is too long."""
    while at < len(text):
        end = text.find("\n", at, at + LONGEST_LINE)
        if end < 0 and len(text) - at > LONGEST_LINE:
            return
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end + 1


def _columns(header: str, row: str, index: str) -> list[_Column]:
    """The columns whose names end where the cells below them do."""
    found = [_Column(index, 0, 0)] if index else []
    words = list(_WORD.finditer(header))
    last = 0
    for number, word in enumerate(words):
        # A word that comes again in the next line is no name with a cell below it.
        if _ends_at(row, word.end()) and not row.startswith(word[0], word.start()):
            first = words[max(0, number + 1 - MOST_WORDS)].start()
            name = _NO_NAME.split(header[first : word.end()])[-1].strip()
            found.append(_Column(name, last, word.end()))
            last = word.end()
    return found if last else []


def _ends_at(row: str, end: int) -> bool:
    return row[end - 1 : end].strip() != "" and row[end : end + 1] in ("", " ")


def _cells(line: str, columns: list[_Column]) -> Iterator[Named]:
    for name, start, end in columns:
        if end == 0 and line[:1] not in ("", " "):
            yield name, line.partition("  ")[0]
        elif _ends_at(line, end):
            # Before a cell there are two blanks mostly, so that it may have one in it.
            yield name, line[max(start, line.rfind("  ", 0, end) + 1) : end].strip()


def _series_in(text: str, is_personal: IsPersonal) -> Iterator[Named]:
    """A Series of pandas: its name stands in the last line; each line has a label and a value."""
    start = 0
    for last in _SERIES.finditer(text):
        name, index = last[1] or "", ""
        for line in _lines(text[start : last.start()], 0):
            label = _LABEL.fullmatch(line)
            if label is None:
                index = line.strip()
                continue
            if name and is_personal(name):
                yield name, label[2]
            elif index and is_personal(index):
                yield index, label[1]
            elif is_personal(label[1]):
                yield label[1], label[2]
        start = last.end()


def _listed_in(text: str, is_personal: IsPersonal) -> Iterator[Named]:
    """A Series of polars: its name stands before it; each line has a value, texts in quotes."""
    for first in _POLARS_SERIES.finditer(text):
        if is_personal(first[1]):
            lines = itertools.takewhile(lambda line: line[:1] == "\t", _lines(text, first.end()))
            yield from ((first[1], line.strip().strip('"')) for line in lines)


def _drawn_in(text: str, is_personal: IsPersonal) -> Iterator[Named]:
    """A table of polars: names, `---`, types, and then the cells."""
    chosen: list[tuple[int, str]] = []
    names: list[str] = []
    skipped = 0
    for line in _DRAWN.finditer(text):
        cells = [cell.strip() for cell in _BETWEEN.split(line[1][:LONGEST_LINE])]
        if set(cells) == {"---"}:
            chosen = [(at, name) for at, name in enumerate(names) if is_personal(name)]
            chosen, skipped = chosen[:MOST_COLUMNS], 1
        elif skipped:
            skipped -= 1
        else:
            yield from ((name, cells[at]) for at, name in chosen if at < len(cells))
        names = cells
