"""The datasets of a folder: listed, described, imported and queried."""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from divingbell import logs, text
from divingbell.datasets import definitions
from divingbell.datasets import folder as folders
from divingbell.datasets.cache import Cache
from divingbell.datasets.folder import DataFile, Found
from divingbell.datasets.personal_columns import PersonalColumns
from divingbell.datasets.sealed_reader import (
    CACHE,
    DATA,
    IN_SESSION,
    Answered,
    SealedReader,
    Unanswered,
)
from divingbell.datasets.spool import Spool
from divingbell.gateway.spooled_tables import MOST_VALUES, VALUES
from divingbell.models import MB

log = logs.logger("divingbell")

KEPT_UP_TO = 256 * MB
"""Bytes of a text file that is kept as Parquet; a larger one is read anew by each request."""
READ_WHOLE = 8 * MB
"""Bytes of a text file that is read whole for a description."""
MOST_PARTS = 200
"""Tables of one file."""
MAX_SHOWN = 200
MAX_NAMED = 40
MOST_NUMBER = 1 << 62
SourceParts = list[str | int | None]


@dataclass(frozen=True, slots=True)
class Dataset:
    """One table: a file, or a sheet or table of it."""

    name: str
    file: DataFile
    part: int | None = None
    """The place of the sheet or table among those of its file."""
    title: str = ""
    """What that sheet or table is called."""

    @property
    def source(self) -> SourceParts:
        """The file as sessions see it."""
        return [f"{DATA}/{self.file.path}", self.file.format, self.part]

    @property
    def label(self) -> str:
        """What its name is made of."""
        stem = os.path.splitext(self.file.path)[0]
        return f"{stem}_{self.title}" if self.title else stem

    @property
    def is_kept(self) -> bool:
        """Whether it is turned into Parquet when it is first used."""
        if self.file.format == "parquet":
            return False
        return self.file.format in folders.WITH_PARTS or self.file.size <= KEPT_UP_TO


@dataclass(frozen=True, slots=True)
class Table:
    """A table that lies in the spool as a Parquet file, and what is known of it."""

    path: Path
    rows: int
    columns: list[dict[str, Any]]
    memory: int
    """Bytes that it takes as a DataFrame, about."""
    size: int
    preview: str
    """Its first rows as CSV."""
    remark: str = ""


class Datasets:
    """All that can be asked about the datasets of one folder."""

    def __init__(
        self,
        folder: Path,
        reader: SealedReader,
        cache: Cache,
        spool: Spool,
        personal: PersonalColumns | None = None,
    ) -> None:
        self._folder = folder
        self._personal = personal
        self._reader = reader
        self._cache = cache
        self._spool = spool
        self._parts: dict[DataFile, list[str] | str] = {}
        """The sheets or tables of a file, or why it can't be read."""
        self._locks: dict[tuple[DataFile, int | None], asyncio.Lock] = {}

    async def listed(self) -> dict[str, Any]:
        """Return all datasets by name, and remarks on what is left out."""
        found, known = await self._known()
        remarks = []
        if found.links:
            remarks.append(f"links are not followed: {found.links:,} were left out")
        if found.unnamed:
            remarks.append(f"{found.unnamed:,} files have names that are no text in UTF-8")
        if found.more:
            remarks.append(f"only the first {folders.MAX_FILES:,} files are listed")
        for file, parts in self._parts.items():
            if isinstance(parts, str):
                remarks.append(f"{_shown(file.path)}: {parts}")
        return {"datasets": [self._facts_of(each) for each in known.values()], "remarks": remarks}

    def _facts_of(self, dataset: Dataset) -> dict[str, Any]:
        file = dataset.file
        listed = {
            "name": dataset.name,
            "file": _shown(file.path),
            "format": file.format,
            "bytes": file.size,
        }
        if dataset.title:
            listed["part"] = dataset.title
        if (kept := self._cache.find(file, dataset.part)) is not None:
            listed["rows"] = kept[1]["rows"]
            if remark := kept[1].get("remark"):
                listed["remark"] = remark
        return listed

    async def describe(self, name: str) -> dict[str, Any]:
        """Return the columns of a dataset with examples, and its rows, or an estimate of them.

        Raises:
            Unanswered: there is none of that name, or it can't be read.
        """
        dataset = await self._find(name)
        facts = await self._description(dataset)
        words = "counted" if facts.get("exact") is True else "an estimate: not all of it was read"
        return {
            **self._facts_of(dataset),
            "rows": _number(facts, "rows"),
            "rows_are": words,
            "columns": self._described(_columns(facts)),
        }

    async def _description(self, dataset: Dataset) -> dict[str, Any]:
        """Return what a session says of a dataset: as it is kept, or of a large text by parts."""
        kept = self._cache.find(dataset.file, dataset.part) is not None
        is_small = dataset.file.size <= READ_WHOLE or dataset.file.format in folders.WITH_PARTS
        if not kept and not (dataset.is_kept and is_small):
            try:
                return await self._asked_for_description(dataset.source)
            except Unanswered:
                if not dataset.is_kept:
                    raise
        source = _kept_source(await self._kept(dataset))
        return await self._asked_for_description(source)

    async def _asked_for_description(self, source: SourceParts) -> dict[str, Any]:
        async with self._reader.ask({"op": "describe", "source": source}) as answered:
            return answered.facts

    def _described(self, columns: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if self._personal is None:
            return columns
        return self._personal.without_examples(definitions.DESCRIBE, columns)

    async def import_table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        sample: int | None = None,
        limit: int | None = None,
    ) -> Table:
        """Put a dataset, or a part of it, into the spool.

        Raises:
            Unanswered: there is none of that name, or it can't be read.
        """
        dataset = await self._find(name)
        source = dataset.source
        if dataset.is_kept:
            path = await self._kept(dataset)
            if (columns, where, sample, limit) == (None, None, None, None):
                kept = self._cache.find(dataset.file, dataset.part)
                if kept is not None:
                    linked = await asyncio.to_thread(self._spool.link, kept[0])
                    table = _table(linked, kept[1])
                    request = self._personal_in(table, definitions.IMPORT, _kept_source(kept[0]))
                    if request is not None:
                        with self._dropping(linked):
                            async with self._reader.ask(request) as answered:
                                await self._leave_values(answered, answered.facts, table)
                    return table
            source = _kept_source(path)
        part = {"columns": columns, "where": where, "sample": sample, "limit": limit}
        return await self._made({"op": "import", "source": source, **part})

    async def query(self, sql: str, parameters: Any = None) -> Table:
        """Put what one SELECT gives into the spool; tables are datasets by their names.

        Raises:
            Unanswered: it can't be run.
        """
        _, known = await self._known()
        words = {word.lower() for word in re.findall(r"\w+", sql)}
        named = [each for each in known.values() if each.name.lower() in words]
        sources = {}
        for each in named[:MOST_PARTS]:
            kept = each.is_kept
            sources[each.name] = _kept_source(await self._kept(each)) if kept else each.source
        request = {"op": "query", "sources": sources, "sql": sql, "parameters": parameters}
        try:
            return await self._made(request)
        except Unanswered as error:
            if "Table with name" not in str(error):
                raise
            raise Unanswered(f"{error}\nThe datasets are: {_named(known)}") from None

    async def _made(self, request: Mapping[str, Any]) -> Table:
        async with self._reader.ask(request) as answered:
            path = self._spool.new()
            with self._dropping(path):
                with path.open("xb") as target:
                    async for piece in answered.table():
                        target.write(piece)
                table = _table(path, answered.facts)
                tool = definitions.QUERY if request["op"] == "query" else definitions.IMPORT
                wanted = self._personal_in(table, tool, [IN_SESSION, "parquet", None])
                if wanted is not None:
                    await self._leave_values(answered, await answered.ask(wanted), table)
            return table

    @contextlib.contextmanager
    def _dropping(self, path: Path) -> Iterator[None]:
        """Leave nothing of a table in the spool, neither it nor its values, if the block fails."""
        try:
            yield
        except BaseException:
            self._spool.drop(path)
            raise

    def _personal_in(self, table: Table, tool: str, source: SourceParts) -> dict[str, Any] | None:
        if self._personal is None:
            return None
        return self._personal.request(tool, table.columns, source)

    async def _leave_values(
        self, answered: Answered, facts: Mapping[str, Any], table: Table
    ) -> None:
        """Leave the values of a table's personal columns beside it, for the gateway."""
        if facts.get("all") is not True:
            log.warning("a table has more personal values than are learned: the first ones are")
        left = MOST_VALUES
        with table.path.with_suffix(VALUES).open("xb") as target:
            async for piece in answered.values():
                left -= len(piece)
                if left < 0:
                    raise Unanswered("the dataset server's session gave an answer without end")
                target.write(piece)

    async def _kept(self, dataset: Dataset) -> Path:
        """Return the Parquet file of a dataset, made if it is not there."""
        file, part = dataset.file, dataset.part
        async with self._locks.setdefault((file, part), asyncio.Lock()):
            if (kept := self._cache.find(file, part)) is not None:
                return kept[0]
            async with self._reader.ask({"op": "convert", "source": dataset.source}) as answered:
                if file not in (await asyncio.to_thread(folders.look_through, self._folder)).files:
                    raise Unanswered(f"{dataset.name} was changed while it was read: ask again")
                facts = _table(Path(), answered.facts)
                known = {
                    "rows": facts.rows,
                    "columns": facts.columns,
                    "memory": facts.memory,
                    "bytes": facts.size,
                    "preview": facts.preview,
                    "remark": facts.remark,
                }
                return await self._cache.keep(file, part, known, answered.table())

    async def _find(self, name: str) -> Dataset:
        _, known = await self._known()
        if (found := known.get(name.lower())) is None:
            raise Unanswered(f"there is no dataset {_shown(name)!r}; there are: {_named(known)}")
        return found

    async def _known(self) -> tuple[Found, dict[str, Dataset]]:
        """Return what there is now: files come and go."""
        try:
            found = await asyncio.to_thread(folders.look_through, self._folder)
        except OSError as error:
            raise Unanswered(f"the folder can't be read: {error.strerror}") from None
        self._parts = {file: parts for file, parts in self._parts.items() if file in found.files}
        tables: list[Dataset] = []
        for file in found.files:
            tables += await self._tables_of(file)
        names = folders.names_for(table.label for table in tables)
        named = (replace(table, name=name) for table, name in zip(tables, names, strict=True))
        return found, {table.name.lower(): table for table in named}

    async def _tables_of(self, file: DataFile) -> list[Dataset]:
        if file.format not in folders.WITH_PARTS:
            return [Dataset("", file)]
        if file not in self._parts:
            request = {"op": "parts", "source": [f"{DATA}/{file.path}", file.format, None]}
            try:
                async with self._reader.ask(request) as answered:
                    self._parts[file] = _titles(answered.facts)
            except Unanswered as error:
                self._parts[file] = text.one_line(str(error), MAX_SHOWN)
        titles = self._parts[file]
        if isinstance(titles, str):
            return []
        if len(titles) == 1:
            return [Dataset("", file, 0)]
        return [Dataset("", file, place, title) for place, title in enumerate(titles)]


def _titles(facts: Mapping[str, Any]) -> list[str]:
    parts = facts.get("parts")
    listed = parts if isinstance(parts, list) else []
    return [_shown(str(part)) for part in listed[:MOST_PARTS]]


def _kept_source(path: Path) -> SourceParts:
    return [f"{CACHE}/{path.name}", "parquet", None]


def _table(path: Path, facts: Mapping[str, Any]) -> Table:
    """Return a table with what a session has said of it; of that, nothing is believed yet."""
    preview, remark = facts.get("preview"), facts.get("remark")
    return Table(
        path,
        _number(facts, "rows"),
        _columns(facts),
        _number(facts, "memory"),
        _number(facts, "bytes"),
        preview if isinstance(preview, str) else "",
        remark if isinstance(remark, str) else "",
    )


def _number(facts: Mapping[str, Any], name: str) -> int:
    found = facts.get(name)
    if type(found) is not int or not 0 <= found < MOST_NUMBER:
        raise Unanswered("the dataset server's session gave an answer that makes no sense")
    return found


def _columns(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = facts.get("columns")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Unanswered("the dataset server's session gave an answer that makes no sense")
    return found


def _named(known: Mapping[str, Dataset]) -> str:
    names = [each.name for each in known.values()]
    more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return (", ".join(names[:MAX_NAMED]) or "none") + more


def _shown(name: str) -> str:
    return text.one_line(name, MAX_SHOWN)
