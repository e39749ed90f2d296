"""The files of a folder that are datasets, and the names that they have."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".xlsx": "excel", ".xlsm": "excel", ".sqlite": "sqlite",
    ".sqlite3": "sqlite", ".db": "sqlite",
}  # fmt: skip
WITH_PARTS = ("excel", "sqlite")
"""Formats of files that hold several tables."""
MAX_FILES, MAX_LOOKED_AT, MAX_DEPTH = 1000, 20_000, 6
MAX_NAME = 60
RESERVED = frozenset({
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both",
    "case", "cast", "check", "collate", "column", "constraint", "create", "default",
    "deferrable", "desc", "describe", "distinct", "do", "else", "end", "except", "false",
    "fetch", "for", "foreign", "from", "group", "having", "in", "initially", "intersect",
    "into", "lambda", "lateral", "leading", "limit", "not", "null", "offset", "on", "only",
    "or", "order", "pivot", "pivot_longer", "pivot_wider", "placing", "primary", "qualify",
    "references", "returning", "select", "show", "some", "summarize", "symmetric", "table",
    "then", "to", "trailing", "true", "union", "unique", "unpivot", "using", "variadic", "when",
    "where", "window", "with",
})  # fmt: skip
"""Words that SQL of DuckDB takes for its own (`duckdb_keywords()`)."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that holds tables, as it was when the folder was looked through."""

    path: str
    """Relative to the folder."""
    format: str
    size: int
    modified: int
    """Nanoseconds, as the file system says."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a folder, and how many were left out because of what they are."""

    files: tuple[DataFile, ...]
    links: int = 0
    """Links are not followed: they may lead out of the folder."""
    unnamed: int = 0
    """Files whose names are no text."""
    more: bool = False
    """Whether there are more files than are looked at."""


def look_through(folder: Path) -> Found:
    """Return the files of a folder and the folders below it; hidden ones are left out.

    Raises:
        OSError: the folder can't be read.
    """
    os.scandir(folder).close()
    files: list[DataFile] = []
    links = unnamed = looked_at = 0
    for path, found in _entries(folder, "", MAX_DEPTH):
        looked_at += 1
        if len(files) >= MAX_FILES or looked_at > MAX_LOOKED_AT:
            return Found(tuple(files), links, unnamed, more=True)
        if (kind := FORMATS.get(os.path.splitext(path)[1].lower())) is None:
            continue
        if not _is_text(path):
            unnamed += 1
        elif stat.S_ISREG(found.st_mode):
            files.append(DataFile(path, kind, found.st_size, found.st_mtime_ns))
        elif stat.S_ISLNK(found.st_mode):
            links += 1
    return Found(tuple(files), links, unnamed)


def _is_text(path: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in path)


def _entries(folder: Path, below: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder / below) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return  # one below that can't be read holds nothing for us
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            if depth:
                yield from _entries(folder, path, depth - 1)
        else:
            yield path, status


def names_for(labels: Iterable[str]) -> list[str]:
    """Return a name for each table: a word for SQL, made of what it is called.

    Names of files are anybody's: of them no more is kept than letters, digits and `_`.
    """
    found: list[str] = []
    taken: set[str] = set()
    for plain in map(_word, labels):
        name, again = plain, 1
        while name.lower() in taken:
            again += 1
            name = f"{plain}_{again}"
        taken.add(name.lower())
        found.append(name)
    return found


def _word(text: str) -> str:
    word = re.sub(r"[\W_]+", "_", text).strip("_")[:MAX_NAME]
    if word.lower() in RESERVED:
        return f"{word}_table"
    return f"_{word}" if not word or word[0].isdigit() else word
