"""Files of datasets as tables of DuckDB: CSV, TSV, JSON lines, Parquet, Excel and SQLite.

It runs in the sealed session of the dataset server. DuckDB reads the first four itself. Workbooks
and databases are read by openpyxl and sqlite3, which its wheel has no readers for.
"""

import contextlib
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from divingbell_inside import columns, dataset_csv, layout
from divingbell_inside.dataset_csv import Broken, Look

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""The words for a missing value that pandas knows."""
SOUGHT = ("", "NA", "NaN", "nan", "-NaN", "-nan")
"""Those that are looked for in each field, at first: to look for all takes a fifth of the time that
a file takes. In a column of numbers the others can't be read, so that reading begins anew."""
PLAIN = frozenset({"BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIME", "TIMESTAMP",
                   "TIMESTAMP WITH TIME ZONE"})  # fmt: skip
"""Types that no word for a missing value is a value of, but those that are sought."""
TEXTS = ("csv", "tsv")
MAX_NAME = 100
"""Characters of the name of a column."""
ROWS_AT_ONCE = 20_000
PROBES, PROBE = 8, 1 << 16
"""Places of a file that are looked at for an estimate of its lines, and bytes of each."""
SMALL = 8 << 20
"""Bytes of a text file whose lines are counted."""
WHOLE = ", sample_size=-1"
"""How a CSV is read whose types by its start were wrong: by all of it."""
MENDED = ", sample_size=-1, delim=',', quote='\"', escape='\"', skip=0"
COPY = f"{layout.WORKSPACE}/.mended.csv"
TO_DO = "mend that line, or have the file written anew"


class Refused(Exception):
    """Raised for a request that can't be granted; the message says why, and what to do."""


class Source(NamedTuple):
    """One table: a file, its format, and the sheet or table in it."""

    path: str
    format: str
    part: int | None = None
    """The place of the sheet or table among `parts_of` its file."""


class Estimate(NamedTuple):
    """A number of rows, and whether they were counted."""

    rows: int
    exact: bool


def quoted(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def clean_names(names: Iterable[str]) -> list[str]:
    """Return names of columns without what can't be seen, short, and each only once."""
    found: list[str] = []
    taken: set[str] = set()
    for number, name in enumerate(names, 1):
        shown = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in name)
        plain = " ".join(shown.split())[:MAX_NAME] or f"column_{number}"
        free, again = plain, 1
        while free.lower() in taken:  # DuckDB takes upper and lower case for the same
            again += 1
            free = f"{plain}_{again}"
        taken.add(free.lower())
        found.append(free)
    return found


def pattern_of(path: str) -> str:
    """Return what DuckDB takes for this path and no other: a path is a pattern of names to it."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def scan(source: Source, way: str = "") -> str:
    """Return what DuckDB reads a file with: a function of a table, as SQL."""
    path = literal(pattern_of(source.path))
    if source.format == "parquet":
        return f"read_parquet({path})"
    if source.format == "jsonl":
        return f"read_json({path}, format='newline_delimited')"
    tabs = ", delim='\t'" if source.format == "tsv" else ""
    return f"read_csv({path}, {_missing(MISSING)}{tabs}{way})"


def _missing(words: Iterable[str]) -> str:
    return f"nullstr=[{', '.join(map(literal, words))}]"


def selection(database: Any, scanned: str) -> str:
    """Return a SELECT of all columns, under clean names."""
    names = [row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {scanned}").fetchall()]
    made = clean_names(names)
    if names == made:
        return f"SELECT * FROM {scanned}"
    renamed = (f"{quoted(old)} AS {quoted(new)}" for old, new in zip(names, made, strict=True))
    return f"SELECT {', '.join(renamed)} FROM {scanned}"


def write_parquet(database: Any, source: Source, to: str) -> str:
    """Write a whole dataset as Parquet; return a remark on how it was read, mostly none.

    Raises:
        Refused: it can't be read.
    """
    if source.format == "excel":
        _fill(database, *_sheet(source))
        return _copied(database, "SELECT * FROM filled", to)
    if source.format == "sqlite":
        with _opened(source) as connection:
            _fill(database, *_table(connection, source))
        return _copied(database, "SELECT * FROM filled", to)
    if source.format in TEXTS:
        return _written_csv(database, source, to)
    return _copied(database, selection(database, scan(source)), to)


def _written_csv(database: Any, source: Source, to: str) -> str:
    found = dataset_csv.look(source.path, source.format)
    failure: Exception | None = None
    if (understood := _understood(database, source, found)) is not None:
        for selected in (*_quickly(database, source, understood), *_slowly(source, understood)):
            try:
                # Names are looked at in what was written: in the file it would take as long as a
                # twentieth of reading it.
                _copied(database, selected, to)
                _rename(database, to)
                return ""
            except columns.library("duckdb").Error as error:
                if "memory" in str(error).lower() or "No space" in str(error):
                    raise
                failure = failure or error
        if "utf-8" in str(failure):  # far down, where nobody has looked yet
            found = found._replace(encoding=dataset_csv.WINDOWS)
    if not found.shapes:
        raise failure or Refused("it is no table of fields that are separated by , ; | or tabs")
    try:
        remark = dataset_csv.mend(source.path, found, COPY)
        _copied(database, f"SELECT * FROM {scan(Source(COPY, 'csv'), MENDED)}", to)
    except Broken as error:
        raise Refused(f"{error}: {TO_DO}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(COPY)
    _rename(database, to)
    return remark


def _quickly(database: Any, source: Source, understood: str) -> Iterator[str]:
    """Yield a SELECT that looks for most words for a missing value in columns of texts alone.

    None where there is a column of which it can't be said that they are no values of it, and where
    types would be guessed once more: with fewer such words they would be others.
    """
    if understood == scan(source) or _missing(MISSING) not in understood:
        return
    quick = understood.replace(_missing(MISSING), _missing(SOUGHT), 1)
    kinds = {row[0]: row[1] for row in database.execute(f"DESCRIBE FROM {understood}").fetchall()}
    if set(kinds.values()) - PLAIN - {"VARCHAR"}:
        return
    rest = ", ".join(literal(word) for word in MISSING if word not in SOUGHT)
    changed = ", ".join(
        f"CASE WHEN {quoted(name)} IN ({rest}) THEN NULL ELSE {quoted(name)} END AS {quoted(name)}"
        for name, kind in kinds.items()
        if kind == "VARCHAR"
    )
    yield f"SELECT *{f' REPLACE ({changed})' if changed else ''} FROM {quick}"


def _slowly(source: Source, understood: str) -> Iterator[str]:
    yield f"SELECT * FROM {understood}"
    yield f"SELECT * FROM {scan(source, WHOLE)}"


def _understood(database: Any, source: Source, found: Look) -> str | None:
    """Return what DuckDB reads a text with, if it takes it for the same table as we do."""
    if found.encoding != dataset_csv.UTF_8:
        return None
    asked = scan(source).replace("read_csv", "sniff_csv", 1)
    try:
        [[described, delimiter, above, quote, comment, prompt]] = database.execute(
            f"SELECT Columns, Delimiter, SkipRows, Quote, Comment, Prompt FROM {asked}"
        ).fetchall()
    except columns.library("duckdb").Error:
        return None if found.shapes else scan(source)
    names = [each["name"] for each in described]
    if quote == "'" or comment not in ("", "(empty)", None):
        return scan(source)  # it has seen what we don't look for
    if not found.is_right(len(names), above):
        return None
    if any("'" in each for each in (source.path, delimiter, *names)):
        return scan(source)  # the prompt has them as they are: nothing of it can be trusted
    return _told(source, prompt)


def _told(source: Source, prompt: str) -> str:
    """Return what DuckDB reads a text with that it has looked at already, in its own words: else
    it would look again, which takes as long as a fifth of reading 30 MB."""
    before, after = f"FROM read_csv({literal(source.path)}, ", ");"
    if not prompt.startswith(before) or not prompt.endswith(after):
        return scan(source)
    path = scan(source).partition(f", {_missing(MISSING)}")[0]
    return f"{path}, {prompt[len(before) : -len(after)]})"


def checked(database: Any, source: Source) -> str:
    """Return what DuckDB reads a file with that is not kept.

    Raises:
        Refused: it is a text that is too large to be mended, and DuckDB would read it wrongly.
    """
    if source.format not in TEXTS:
        return scan(source)
    found = dataset_csv.look(source.path, source.format)
    if (understood := _understood(database, source, found)) is not None:
        return understood
    if found.encoding != dataset_csv.UTF_8:
        raise Refused("it is no text in UTF-8: save it as such")
    odd = found.shapes[0].odd
    where = "some line" if odd is None else f"line {odd:,}"
    raise Refused(f"{where} has more or fewer than {found.shapes[0].width:,} fields: {TO_DO}")


def _rename(database: Any, path: str) -> None:
    """Write a table once more, under clean names, where some are not."""
    written = f"read_parquet({literal(path)})"
    if (selected := selection(database, written)) != f"SELECT * FROM {written}":
        _copied(database, selected, f"{path}.renamed")
        os.replace(f"{path}.renamed", path)


def _copied(database: Any, selected: str, to: str) -> str:
    database.execute(f"COPY ({selected}) TO {literal(to)} (FORMAT parquet)")
    return ""


def estimate(database: Any, source: Source) -> Estimate:
    """Return how many rows a file has; of a large text, about how many, without reading it all."""
    if source.format == "parquet" or os.path.getsize(source.path) <= SMALL:
        [[count]] = database.execute(f"SELECT count(*) FROM {scan(source)}").fetchall()
        return Estimate(count, True)
    size = os.path.getsize(source.path)
    lines = 0
    with open(source.path, "rb", buffering=0) as file:
        for number in range(PROBES):
            file.seek((size - PROBE) * number // (PROBES - 1))
            lines += file.read(PROBE).count(b"\n")
    return Estimate(round(lines * size / (PROBES * PROBE)), False)


def parts_of(source: Source) -> list[str]:
    """Return the sheets of a workbook, or the tables of a database.

    Raises:
        Refused: it can't be read.
    """
    if source.format == "excel":
        with _workbook(source) as book:
            return [str(name) for name in book.sheetnames]
    with _opened(source) as connection:
        return _tables(connection)


# Workbooks


@contextlib.contextmanager
def _workbook(source: Source) -> Iterator[Any]:
    openpyxl = columns.library("openpyxl")
    try:
        book = openpyxl.load_workbook(source.path, read_only=True, data_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # whatever is wrong with the archive or the XML in it
        raise Refused(f"it is no workbook that can be read ({error})") from None
    try:
        yield book
    finally:
        book.close()


def _sheet(source: Source) -> tuple[list[str], list[str], Iterator[Sequence[Sequence[Any]]]]:
    """Return names, types and rows of a sheet. Its first row that holds anything is the header."""
    with _workbook(source) as book:
        sheet = book[book.sheetnames[source.part or 0]]
        rows = [row for row in sheet.iter_rows(values_only=True) if any(c is not None for c in row)]
    if not rows:
        raise Refused("the sheet is empty")
    width = max(map(len, rows))
    header = ["" if name is None else str(name) for name in rows[0]]
    header += [""] * (width - len(header))
    body = [[*map(_present, row), *[None] * (width - len(row))] for row in rows[1:]]
    types = [_type_of({type(row[place]) for row in body}) for place in range(width)]
    texts = [place for place, kind in enumerate(types) if kind == "VARCHAR"]
    for row in body:
        for place in texts:
            row[place] = None if row[place] is None else str(row[place])
    return clean_names(header), types, iter([body])


def _present(value: Any) -> Any:
    return None if isinstance(value, str) and value in MISSING else value


_TYPES = {"bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "datetime": "TIMESTAMP",
          "date": "DATE", "time": "TIME", "timedelta": "INTERVAL"}  # fmt: skip


def _type_of(kinds: set[type]) -> str:
    names = {kind.__name__ for kind in kinds} - {"NoneType"}
    if names == {"int", "float"}:
        return "DOUBLE"
    return _TYPES.get(names.pop(), "VARCHAR") if len(names) == 1 else "VARCHAR"


# Databases of SQLite


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a database that lies where nothing can be written, also no lock."""
    address = "".join(f"%{byte:02x}" if byte in b"?#%" else chr(byte)
                      for byte in source.path.encode("utf-8", "surrogateescape"))  # fmt: skip
    connection = sqlite3.connect(f"file:{address}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        yield connection
    except sqlite3.Error as error:
        raise Refused(f"it is no database that can be read ({error})") from None
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    return [str(name) for [name] in rows]


def _table(
    connection: sqlite3.Connection, source: Source
) -> tuple[list[str], list[str], Iterator[Sequence[Sequence[Any]]]]:
    table = quoted(_tables(connection)[source.part or 0])
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    # A column of SQLite holds values of any type, whatever it was declared as.
    held = ", ".join(f"group_concat(DISTINCT typeof({quoted(name)}))" for name in names)
    [found] = connection.execute(f"SELECT {held} FROM {table}")
    types = [_affinity(set((kinds or "").split(","))) for kinds in found]
    selected = ", ".join(
        f"CAST({quoted(name)} AS TEXT)" if kind == "VARCHAR" else quoted(name)
        for name, kind in zip(names, types, strict=True)
    )
    rows = connection.execute(f"SELECT {selected} FROM {table}")
    return clean_names(names), types, iter(lambda: rows.fetchmany(ROWS_AT_ONCE), [])


def _affinity(kinds: set[str]) -> str:
    kinds -= {"null", ""}
    if kinds <= {"integer", "real"} and kinds:
        return "DOUBLE" if "real" in kinds else "BIGINT"
    return "BLOB" if kinds == {"blob"} else "VARCHAR"


def _fill(
    database: Any, names: list[str], types: list[str], batches: Iterator[Sequence[Sequence[Any]]]
) -> None:
    """Make a table `filled` of rows that Python has read."""
    pandas = columns.library("pandas")
    declared = ", ".join(f"{quoted(n)} {kind}" for n, kind in zip(names, types, strict=True))
    database.execute(f"CREATE TABLE filled ({declared})")
    cast = ", ".join(f"CAST({quoted(n)} AS {kind})" for n, kind in zip(names, types, strict=True))
    for batch in batches:
        if batch:
            rows = pandas.DataFrame(batch, columns=names, dtype=object)
            database.register("batch", rows)
            database.execute(f"INSERT INTO filled SELECT {cast} FROM batch")
            database.unregister("batch")
