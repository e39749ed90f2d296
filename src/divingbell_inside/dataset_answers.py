"""Answers about datasets: what the sealed session of the dataset server is asked.

Each request has a session of its own, so that nothing that SQL does there outlives it. What keeps
a statement from files and settings here is for the words of its error; the session is the wall.
"""

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from divingbell_inside import columns, dataset_sources, layout
from divingbell_inside.dataset_sources import Estimate, Refused, Source, literal, quoted

TABLE = f"{layout.WORKSPACE}/table.parquet"
VALUES = f"{layout.WORKSPACE}/values.json"
MOST_VALUES_BYTES, MAX_VALUE = 8 << 20, 300
SPILL = f"{layout.WORKSPACE}/.spill"
LOOKED_AT = 1000
"""Rows that are looked at for a description."""
COUNTED = 1_000_000
"""Rows of a table whose missing values are counted in all of it."""
EXAMPLES, MAX_EXAMPLE = 3, 60
MEASURED = 10_000
"""Rows whose texts are measured, to tell how much memory all will take."""
PREVIEW_ROWS, MAX_CELL = 50, 200
MAX_REASON = 1500
TEXT = 65
"""Bytes of a text of Python beside its characters, with the place that refers to it."""
WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4,
          "UINTEGER": 4, "FLOAT": 4}  # fmt: skip
OTHER = 8
NESTED = 300
"""Bytes of a list, a struct or a map."""

Answer = dict[str, Any]


def answer(request: Mapping[str, Any]) -> Answer:
    """Do what the host asks for; where it can't be done, `refused` says why."""
    try:
        return _OPERATIONS[request["op"]](request)
    except Refused as error:
        reason = str(error)
    except PermissionError:
        reason = (
            "sessions can't read it: they run as another user; let everyone read the file and "
            "enter its folder (chmod -R o+rX)"
        )
    except MemoryError:
        reason = "it takes more memory than there is: ask for fewer rows or columns"
    except OSError as error:
        reason = f"it can't be read: {error.strerror}"
    except UnicodeError:
        reason = "it is no text in UTF-8: save it as such"
    except columns.library("duckdb").Error as error:
        reason = _plain(str(error))
    return {"refused": reason[:MAX_REASON]}


def _plain(words: str) -> str:
    if "Out of Memory" in words or "max_temp_directory_size" in words or "No space left" in words:
        return (
            "it takes more memory or disk than there is: ask for fewer rows or columns, or let "
            "the query group and sum"
        )
    if "Permission denied" in words:
        return (
            "sessions can't read it: they run as another user; let everyone read the file and "
            "enter its folder (chmod -R o+rX)"
        )
    if "does not support a full read" in words:  # and advises what nobody here can do
        return "a line of it is too long to be read, so it may be damaged: split or mend the file"
    if "disabled by configuration" in words or "disabled through configuration" in words:
        return f"a query reads datasets by their names, and nothing else. {words}"
    return words


def _source(request: Mapping[str, Any]) -> Source:
    return Source(*request["source"])


def _database(request: Mapping[str, Any]) -> Any:
    threads = int(request["threads"])
    config = {
        "threads": threads,
        "async_threads": 0,
        "memory_limit": f"{int(request['memory'])}B",
        "temp_directory": SPILL,
        "max_temp_directory_size": f"{shutil.disk_usage(layout.WORKSPACE).free // 2}B",
    }
    return columns.library("duckdb").connect(config=config)


def _close_off(database: Any, sources: Iterable[Source]) -> None:
    """Keep a statement of the model's from settings, extensions and all files but its datasets:
    what else lies in their folder, hidden files among it, was shown to nobody."""
    paths = {
        path for each in sources for path in (each.path, dataset_sources.pattern_of(each.path))
    }
    allowed = ", ".join(map(literal, sorted(paths)))
    database.execute(f"SET allowed_directories=[{literal(f'{layout.WORKSPACE}/')}]")
    database.execute(f"SET allowed_paths=[{allowed}]")
    database.execute("SET enable_external_access=false")
    database.execute("SET lock_configuration=true")


def _parts(request: Mapping[str, Any]) -> Answer:
    return {"parts": dataset_sources.parts_of(_source(request))}


def _describe(request: Mapping[str, Any]) -> Answer:
    source = _source(request)
    with open(source.path, "rb"):
        pass  # a file that can't be read says so plainly here
    with _database(request) as database:
        selected = dataset_sources.selection(database, dataset_sources.checked(database, source))
        described = database.execute(f"DESCRIBE {selected}").fetchall()
        first = f"SELECT * FROM ({selected}) LIMIT {LOOKED_AT}"
        # As text: for times with zones DuckDB would want a package for Python.
        rows = database.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({first})").fetchall()
        found = dataset_sources.estimate(database, source)
        missing = _missing(database, selected, [row[0] for row in described], found, len(rows))
    return {
        "columns": [
            {"name": name, "type": kind, **_examples([row[place] for row in rows], missing[place])}
            for place, (name, kind, *_) in enumerate(described)
        ],
        "rows": found.rows,
        "exact": found.exact,
    }


def _missing(
    database: Any, selected: str, names: Sequence[str], found: Estimate, looked_at: int
) -> list[str]:
    """Return how much of each column is missing; empty where nothing is."""
    is_all = found.exact and found.rows <= COUNTED
    rows = selected if is_all else f"{selected} LIMIT {looked_at}"
    counts = ", ".join(f"count({quoted(name)})" for name in names)
    [[total, *there]] = database.execute(f"SELECT count(*), {counts} FROM ({rows})").fetchall()
    of = "" if is_all else f" of the first {total:,} rows"
    return [f"{1 - each / total:.0%}{of}" if each < total else "" for each in there]


def _examples(values: Sequence[Any], missing: str) -> Answer:
    there = [value for value in values if value is not None]
    shown = list(dict.fromkeys(_cell(value, MAX_EXAMPLE) for value in there))[:EXAMPLES]
    return {"examples": shown} | ({"missing": missing} if missing else {})


def _cell(value: Any, most: int) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(value: Any) -> str:
    return " ".join(_cell(value, MAX_CELL).split())


def _convert(request: Mapping[str, Any]) -> Answer:
    source = _source(request)
    with open(source.path, "rb"):
        pass
    with _database(request) as database:
        remark = dataset_sources.write_parquet(database, source, TABLE)
        return _written(database) | ({"remark": remark} if remark else {})


def _import(request: Mapping[str, Any]) -> Answer:
    with _database(request) as database:
        _show(database, "dataset", _source(request))
        _close_off(database, [_source(request)])
        sql = f"SELECT {_chosen(database, request['columns'])} FROM dataset"
        if request["where"]:
            sql += f" WHERE (\n{request['where']}\n)"
        if request["sample"] is not None:
            sql = f"SELECT * FROM ({sql}) USING SAMPLE reservoir({request['sample']} ROWS)"
            sql += " REPEATABLE (1)"
        if request["limit"] is not None:
            sql += f" LIMIT {request['limit']}"
        return _copied(database, sql, None)


def _chosen(database: Any, wanted: Sequence[str] | None) -> str:
    if wanted is None:
        return "*"
    known = [row[0] for row in database.execute("DESCRIBE dataset").fetchall()]
    unknown = [name for name in wanted if name.lower() not in {each.lower() for each in known}]
    if unknown or not wanted:
        missing = f"there is no column {unknown[0]!r}" if unknown else "columns is an empty list"
        raise Refused(f"{missing}; there are: {', '.join(known)}")
    return ", ".join(map(quoted, wanted))


def _query(request: Mapping[str, Any]) -> Answer:
    with _database(request) as database:
        sources = {name: Source(*given) for name, given in request["sources"].items()}
        for name, source in sources.items():
            _show(database, name, source)
        _close_off(database, sources.values())
        return _copied(database, request["sql"], request["parameters"])


def _show(database: Any, name: str, source: Source) -> None:
    selected = dataset_sources.selection(database, dataset_sources.checked(database, source))
    database.execute(f"CREATE VIEW {quoted(name)} AS {selected}")


def _copied(database: Any, sql: str, parameters: Any) -> Answer:
    """Write down what one SELECT gives."""
    statements = database.extract_statements(sql)
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        raise Refused(
            "a query is one SELECT (it may begin with WITH or FROM); what it gives is a table, and "
            f"nothing can be changed. This is: {', '.join(kinds) or 'nothing'}"
        )
    text = statements[0].query.strip().rstrip(";")
    given = parameters or None
    described = database.execute(f"DESCRIBE SELECT * FROM (\n{text}\n)", given).fetchall()
    sums = [quoted(name) for name, kind, *_ in described if kind == "HUGEINT"]
    if sums:
        # The sum of whole numbers, which Parquet would hold as a float.
        casts = ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in sums)
        with contextlib.suppress(columns.library("duckdb").ConversionException):
            _copy(database, f"SELECT * REPLACE ({casts}) FROM (\n{text}\n)", given)
            return _written(database)
    _copy(database, text, given)
    return _written(database)


def _copy(database: Any, sql: str, parameters: Any) -> None:
    database.execute(f"COPY (\n{sql}\n) TO {literal(TABLE)} (FORMAT parquet)", parameters)


def _written(database: Any) -> Answer:
    """Return what the host has to know of the table that was written."""
    table = f"read_parquet({literal(TABLE)})"
    [[rows]] = database.execute(f"SELECT count(*) FROM {table}").fetchall()
    described = database.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    described = [(row[0], row[1]) for row in described]
    return {
        "rows": rows,
        "columns": [{"name": name, "type": kind} for name, kind in described],
        "memory": rows * _row_width(database, table, described),
        "bytes": os.path.getsize(TABLE),
        "preview": _preview(database, table),
    }


def _row_width(database: Any, table: str, described: Sequence[tuple[str, str]]) -> int:
    """Return the bytes that a row takes in a DataFrame, about."""
    measures = {"VARCHAR": "strlen", "BLOB": "octet_length"}
    texts = [(name, measures[kind]) for name, kind in described if kind in measures]
    width = sum(_width(kind) for _, kind in described if kind not in measures)
    if texts:
        lengths = " + ".join(f"coalesce({each}({quoted(name)}), 0)" for name, each in texts)
        measured = f"SELECT * FROM {table} LIMIT {MEASURED}"
        [[mean]] = database.execute(f"SELECT avg({lengths}) FROM ({measured})").fetchall()
        width += len(texts) * TEXT + round(mean or 0)
    return width


def _width(kind: str) -> int:
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "JSON")):
        return NESTED
    return WIDTHS.get(kind, OTHER) + 1


def _values(request: Mapping[str, Any]) -> Answer:
    """Write down the values of some columns, each once, as far as there is room."""
    left, size = int(request["most"]), 2
    found: dict[str, list[str]] = {}
    with _database(request) as database:
        selected = dataset_sources.selection(database, dataset_sources.scan(_source(request)))
        asked = [(name, "{}::VARCHAR") for name in request["columns"]]
        asked += [(name, "to_json({})::VARCHAR") for name in request["nested"]]
        for name, written in asked:
            text = written.format(quoted(name))
            sql = f"SELECT DISTINCT {text} FROM ({selected}) WHERE {quoted(name)} IS NOT NULL"
            for (value,) in database.execute(f"{sql} LIMIT {left + 1}").fetchall():
                kept = value[:MAX_VALUE] if written.startswith("{") else value
                size += len(json.dumps(kept)) + 2
                if left <= 0 or size > MOST_VALUES_BYTES - len(request["columns"]) * 1000:
                    break
                found.setdefault(name, []).append(kept)
                left -= 1
    with open(VALUES, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return {"all": left > 0 and size <= MOST_VALUES_BYTES}


def _preview(database: Any, table: str) -> str:
    """Return the first rows as CSV, for those who can't take a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas' own, about what DuckDB does
        first = database.execute(f"SELECT * FROM {table} LIMIT {PREVIEW_ROWS}").df()
    for place, kind in enumerate(first.dtypes):
        if str(kind) in ("object", "str"):
            shown = first.iloc[:, place].map(_line, na_action="ignore")
            first.isetitem(place, shown)
    return str(first.to_csv(index=False))


_OPERATIONS = {
    "parts": _parts,
    "describe": _describe,
    "convert": _convert,
    "import": _import,
    "query": _query,
    "values": _values,
}
