"""The learner: takes personal values out of results and files, by the names of their fields."""

import itertools
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from divingbell.border.privacy import documents, shown_tables
from divingbell.border.privacy.documents import TooMuch
from divingbell.border.privacy.fields import Field, Fields, FieldsOfOrigin
from divingbell.border.privacy.kinds import SECRETS
from divingbell.border.privacy.learned import LONGEST, Learned
from divingbell.border.privacy.seals import Hold, Seals, payloads, written
from divingbell.border.walk import text_of
from divingbell.shares.weight import is_heavier
from divingbell_inside import frames

MOST_PARTS = 250_000
"""Members of lists and dicts of one result or file that are looked at. Measured: 0.65 s at most, in
a result that has a name of its own for each."""
MOST_DEPTH = 64
MOST_NESTED = 3
"""Times that JSON may stand in a text of JSON."""
MOST_TEXT = 8 << 20
"""Characters of texts of one result that are read as JSON or as a table."""
MOST_FILE = 8 << 20
"""Bytes of a file; of a longer table or lines of JSON, the first so many."""
MOST_OF_SERVER = 50_000
"""Values that are learned from one server, or from all files, so that there is room for others."""
FILES = "files"
"""Stands for the server in the origin of a file."""
SHOWN = "shown"
"""The same for what a session shows; the tool is `table`."""
MOST_SHOWN = 10_000
"""Values that are learned from what a session shows: its code may print any number of tables."""
TOLD = "tables of the code"
"""The same for what it says of its tables beside that."""
MOST_TOLD = 10_000
GIVEN = "arguments of tools"
"""The same for what code gives tools."""
MOST_GIVEN = 10_000
MOST_TOLD_WEIGHT = 200_000
"""Of what is told at once: 10,000 values with their names have a third of it."""
_TABLES = {"csv": "", "txt": "", "tsv": "\t", "tab": "\t"}
"""Endings of tables, and what stands between their cells where that is known."""
_JSON = frozenset(("json", "jsonl", "ndjson"))
_FEW = 20
_PLAIN = frozenset((int, float, bool, type(None)))
_MAY_BE_DOCUMENT = re.compile(r"[\n{\[<]")
"""JSON, a table, or HTML."""
_TELLING = frozenset(("value", "blob"))
"""Names whose values say more than that they stand there."""
_HEADERS = frozenset(("columns", "column_names", "headers", "header", "fields"))
_ROWS = ("rows", "data", "values", "records")
_PAIR_NAMES = ("name", "key", "field", "property", "label")
_LONGEST_MAILBOX = 320
_LONGEST_NUMBER = 40
_LONGEST_OF_PERSON = 120
_LEAST_SECRET = 8
_LEAST_DIGITS = 4
_DAY_WITH_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d[\d:.,+Z -]{0,20}")
"""A day of birth as databases keep it, with a time that is nobody's."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What came of reading one result or file."""

    learned: int = 0
    """Values that were not known before."""
    refused: int = 0
    """Values that found no room: they are not found again."""
    problem: str = ""
    """Why some of it was not read, as a sentence without an end; empty if all of it was."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """Values below fields that are sealed, and their kinds; none, `""`, where no field says it."""
    open: Sequence[str] = ()
    """Texts below fields that are not sealed, of a tool that is."""
    closed: Sequence[str] = ()
    """All other texts, of such a tool."""


class _Part(NamedTuple):
    """A part of a result that is still to be looked at."""

    value: Any
    path: str = ""
    """The names that lead to it."""
    field: Field | None = None
    nested: int = 0
    """How many texts of JSON it stands in."""
    hold: Hold | None = None
    """Who does not see it, where fields decide about that."""


class Learner:
    """Learns what stands in personal fields. May be used by several threads.

    A result of a megabyte takes a tenth of a second and more: call it in a thread.
    """

    def __init__(self, fields: Fields, learned: Learned) -> None:
        self._fields = fields
        self._learned = learned
        self._counts: Counter[str] = Counter()
        self._missed: dict[str, bool] = {}
        """Of whom not all was learned, and whether that was told."""
        self._guard = threading.Lock()

    def learn(self, value: Any, tool: str, seals: Seals | None = None) -> Lesson:
        """Learn from a result of `server.tool`: JSON, and in its texts JSON, CSV and HTML."""
        fields = self._fields.of(tool)
        if seals is None and _says_nothing(value, fields):
            return Lesson()
        reading = _Reading(fields, seals)
        reading.read(payloads(value))
        return self._keep(reading, tool.partition(".")[0], MOST_OF_SERVER)

    def learn_given(self, value: Any, tool: str) -> Lesson:
        """Learn from arguments of `server.tool`.

        Code decides about them: they have room of their own, and take none of that of results.
        """
        fields = self._fields.of(tool)
        if _says_nothing(value, fields):
            return Lesson()
        reading = _Reading(fields)
        reading.read(payloads(value))
        return self._keep(reading, GIVEN, MOST_GIVEN)

    def learn_file(self, name: str, data: bytes) -> Lesson:
        """Learn from a file: CSV, TSV, JSON or lines of JSON, by the ending of its name."""
        ending = name.rpartition(".")[2].lower()
        if ending not in _TABLES and ending not in _JSON:
            return Lesson(problem=f"nothing is learned from files that end in .{ending[:20]}")
        reading = _Reading(self._fields.of(f"{FILES}.{name}"))
        text, is_cut = _text_of(data)
        if is_cut:
            reading.problem = f"only the first {MOST_FILE >> 20} MB of the file were read"
        if ending in _TABLES:
            reading.read_table(text, _TABLES[ending])
        else:
            reading.read_json(text)
        return self._keep(reading, FILES, MOST_OF_SERVER)

    def learn_shown(self, values: Iterable[Any]) -> Lesson:
        """Learn from what a session shows: the tables in its texts, and values of JSON.

        Code decides about them, so that they can add values, and take none away.
        """
        reading = _Reading(self._fields.of(f"{SHOWN}.table"))
        for value in values:
            if isinstance(value, str):
                reading.read_shown(value)
            else:
                reading.read([value])
        return self._keep(reading, SHOWN, MOST_SHOWN)

    def learn_told(self, told: bytes) -> Lesson:
        """Learn from what a session says of its tables, JSON of values by the names of columns.

        They have room of their own: what is told of a large table must not take that of the tables
        which are shown.
        """
        reading = _Reading(self._fields.of(f"{SHOWN}.table"))
        if is_heavier(told, MOST_TOLD_WEIGHT):
            reading.problem = "a session told more of its tables than is read"
        else:
            try:
                columns = frames.parse(told)
            except frames.FrameError:
                reading.problem = "what a session told of its tables is not JSON"
            else:
                reading.read([columns])
        return self._keep(reading, TOLD, MOST_TOLD)

    def newly_missed(self) -> list[str]:
        """Return of whom not all was learned, servers or FILES and SHOWN: each of them once."""
        with self._guard:
            found = [server for server, is_told in self._missed.items() if not is_told]
            self._missed.update(dict.fromkeys(found, True))
        return found

    def _keep(self, reading: "_Reading", server: str, most: int) -> Lesson:
        with self._guard:
            room = most - self._counts[server]
            known = len(self._learned)
            some = itertools.islice(reading.values.items(), max(0, room))
            refused = self._learned.add(some) + max(0, len(reading.values) - room)
            learned = len(self._learned) - known
            self._counts[server] += learned
            if refused or reading.problem:
                self._missed.setdefault(server, False)
        return Lesson(
            learned,
            refused,
            reading.problem,
            reading.sealed,
            tuple(reading.open),
            tuple(reading.closed),
        )


class _Reading:
    """One result or file on its way through a learner."""

    def __init__(self, fields: FieldsOfOrigin, seals: Seals | None = None) -> None:
        self._fields = fields
        self._seals = seals if seals is not None and seals.is_by_field else None
        self._parts = MOST_PARTS
        self._text = MOST_TEXT
        self.values: dict[str, str] = {}
        """Kinds by values."""
        self.sealed: dict[str, str] = {}
        self.open: list[str] = []
        self.closed: list[str] = []
        self.problem = ""

    def read(self, values: Iterable[Any]) -> None:
        """Read values of JSON."""
        self._read_all(_Part(value, hold=self._whole) for value in values)

    @property
    def _whole(self) -> Hold | None:
        return None if self._seals is None else self._seals.whole

    def read_json(self, text: str) -> None:
        """Read a file of JSON, or of lines of it."""
        self._read_all(_Part(value) for value in documents.json_in(text))

    def read_table(self, text: str, delimiter: str) -> None:
        """Read a file with a table."""
        self._read_all(self._cells(documents.rows_in(text, delimiter), _Part(None)))

    def read_shown(self, text: str) -> None:
        """Read the tables in a text that a session shows."""
        shown = _Part(text)
        if "<table" in text:
            self._read_all(self._in_html(shown))
        cells = shown_tables.cells_in(text, self._is_personal)
        self._read_all(self._below(shown, name, cell) for name, cell in cells)

    def _is_personal(self, name: str) -> bool:
        field = self._fields.field(name)
        return field is not None and bool(field.kind)

    def _read_all(self, parts: Iterator[_Part]) -> None:
        """Go through parts and what is in them, in their order, as far as there is to go."""
        stack = [parts]
        while stack:
            try:
                part = next(stack[-1], None)
            except TooMuch as error:
                part, self.problem = None, self.problem or str(error)
            if part is None:
                stack.pop()
                continue
            self._parts -= 1
            if self._parts < 0:
                self.problem = f"only the first {MOST_PARTS:,} parts were looked at"
                return
            inner = self._look(part)
            if inner is not None and len(stack) < MOST_DEPTH:
                stack.append(inner)
            elif inner is not None:
                self.problem = "what is nested too deeply was not looked at"
        if self._fields.is_spent or (self._seals and self._seals.is_spent):
            self.problem = "there were more fields than are compared with the patterns of settings"

    def _look(self, part: _Part) -> Iterator[_Part] | None:
        """Take what a part says; return what is in it."""
        value = part.value
        if isinstance(value, bytes):
            value = text_of(value)
            part = part._replace(value=value)
        if isinstance(value, str):
            inner = self._in_text(part)
            self._note(part, is_document=inner is not None)
            return inner
        self._note(part)
        if isinstance(value, dict):
            return self._in_dict(part)
        if isinstance(value, list | tuple):
            return self._in_list(part)
        if part.field is not None and type(value) in (int, float):
            self._take(_written(value), part.field)
        return None

    def _note(self, part: _Part, *, is_document: bool = False) -> None:
        """Take down whether code may have a value, where fields decide about that."""
        hold, whole = part.hold, self._whole
        if hold is None or whole is None or not (text := written(part.value)):
            return
        if hold.is_field and hold.reader == "sandbox":
            self.sealed[text] = self.sealed.get(text) or (part.field.kind if part.field else "")
        elif whole.reader == "sandbox" and not is_document:
            (self.open if hold.is_field else self.closed).append(text)

    def _in_dict(self, part: _Part) -> Iterator[_Part]:
        value: dict[Any, Any] = part.value
        if not _HEADERS.isdisjoint(value):
            names, rows = _table_of(value)
            yield from self._cells(itertools.chain((names,), rows), part)
        if isinstance(blob := value.get("blob"), str) and len(blob) <= self._text:
            self._text -= len(blob)
            yield _Part(documents.text_in_base64(blob), *part[1:])
        if "value" in value and (pair := _pair_of(value)) is not None:
            yield self._below(part, pair, value["value"])
        for name, each in value.items():
            # Numbers are those of rows, as in `{"first_name": {0: "Ann"}}`.
            yield self._below(part, name, each) if isinstance(name, str) else _Part(each, *part[1:])

    def _in_list(self, part: _Part) -> Iterator[_Part]:
        value: Sequence[Any] = part.value
        if len(value) > 1 and _is_header(value[0]) and isinstance(value[1], list):
            yield from self._cells(iter(value), part)
        for each in value:
            yield _Part(each, *part[1:])

    def _below(self, part: _Part, name: str, value: Any) -> _Part:
        path = f"{part.path}.{name}" if part.path else name
        field = self._fields.field(name, path)
        hold = part.hold
        if hold is not None and self._seals is not None:
            hold = self._seals.below(hold, name, path)
        return _Part(value, path, part.field if field is None else field, part.nested, hold)

    def _cells(self, rows: Iterator[Any], part: _Part) -> Iterator[_Part]:
        """Yield the cells of a table's personal columns; its first row has their names. Where
        fields decide who sees what, those of all columns."""
        header = (self._below(part, str(name), "") for name in next(rows, ()))
        columns = [
            (at, each)
            for at, each in enumerate(header)
            if each.hold or (each.field and each.field.kind)
        ]
        for row in rows if columns else ():
            if isinstance(row, list | tuple):
                yield from (_Part(row[at], *each[1:]) for at, each in columns if at < len(row))

    def _in_text(self, part: _Part) -> Iterator[_Part] | None:
        """Take a text as the value of its field, or return what is in it as in a document."""
        text: str = part.value
        inner = self._document_in(text, part.field is not None)
        if inner is not None and part.nested < MOST_NESTED and len(text) <= self._text:
            self._text -= len(text)
            return inner(_Part(text, part.path, part.field, part.nested + 1, part.hold))
        if inner is not None:
            self.problem = self.problem or "there was more JSON in texts than is read"
        if part.field is not None:
            self._take(text.strip(), part.field)
        return None

    def _document_in(self, text: str, is_value: bool) -> Callable[[_Part], Iterator[_Part]] | None:
        """Return what reads a text that may be a document; the value of a field is no table."""
        if not is_value and "<table" in text:
            return self._in_html
        if not is_value and self._is_table(text):
            return self._in_table
        return self._in_json if "{" in text or "[" in text else None

    def _in_html(self, part: _Part) -> Iterator[_Part]:
        for rows in documents.html_tables_in(part.value):
            yield from self._cells(iter(rows), part)

    def _in_table(self, part: _Part) -> Iterator[_Part]:
        return self._cells(documents.rows_in(part.value.lstrip("\ufeff\r\n")), part)

    def _in_json(self, part: _Part) -> Iterator[_Part]:
        is_json = False
        for value in documents.json_in(part.value):
            is_json = True
            yield _Part(value, *part[1:])
        if not is_json:
            self._note(part)
            if part.field is not None:
                self._take(part.value.strip(), part.field)

    def _is_table(self, text: str) -> bool:
        """Whether the first line has names of fields, a personal one among them."""
        if "\n" not in text[: documents.LONGEST_HEADER]:
            return False
        first = documents.first_line(text)
        if first.lstrip().startswith(("{", "[")):
            return False
        names = first.split(documents.delimiter_of(text))
        parts = [self._below(_Part("", hold=self._whole), name.strip(' "\r'), "") for name in names]
        return len(names) > 1 and any(map(_is_told_apart, parts))

    def _take(self, text: str, field: Field) -> None:
        text, kind = text.removesuffix("...").removesuffix("…"), field.kind
        if kind == "ADDRESS" and "@" in text and not field.is_meant:
            kind = "EMAIL"
        if kind and (field.is_meant or may_be(text, kind)):
            self.values.setdefault(text[:LONGEST], kind)
            if kind == "BIRTH_DATE" and (day := _DAY_WITH_TIME.fullmatch(text)):
                self.values.setdefault(day[1], kind)


def _says_nothing(value: Any, fields: FieldsOfOrigin) -> bool:
    """Whether this is an object, as most arguments are, in which nothing can be learned: of few
    plain values, under names of no field, and of texts in which there is nothing else."""
    if type(value) is not dict or len(value) > _FEW:
        return False
    for name, each in value.items():
        if type(name) is not str or name in _TELLING or fields.field(name, name) is not None:
            return False
        if type(each) is str:
            if _MAY_BE_DOCUMENT.search(each):
                return False
        elif type(each) not in _PLAIN:
            return False
    return True


def _is_told_apart(part: _Part) -> bool:
    """Whether a column is personal, or there is a line on the border about it."""
    is_personal = part.field is not None and part.field.kind != ""
    return is_personal or (part.hold is not None and part.hold.is_field)


def may_be(text: str, kind: str) -> bool:
    """Whether a field that is called so may hold this: `email` may also be how often one is sent.

    Values that are too short or too common are left out by `Learned`.
    """
    size = len(text)
    if kind == "EMAIL":
        return "@" in text and size <= _LONGEST_MAILBOX and len(text.split()) == 1
    if kind == "NAME":
        return size <= _LONGEST_OF_PERSON and any(map(str.isalpha, text)) and "://" not in text
    if kind == "ADDRESS":
        return size <= LONGEST and not text.startswith(("0x", "/")) and "://" not in text
    if kind in SECRETS:
        return size >= _LEAST_SECRET
    return size <= _LONGEST_NUMBER and sum(map(str.isdecimal, text)) >= _LEAST_DIGITS


def _table_of(value: dict[Any, Any]) -> tuple[list[str], Iterable[Any]]:
    """The names and rows of a result such as `{"columns": ["id", "email"], "rows": [[…]]}`."""
    for header in _HEADERS & value.keys():
        names = value.get(header)
        if isinstance(names, list) and names:
            for rows in _ROWS:
                found = value.get(rows)
                if isinstance(found, list) and found and isinstance(found[0], list):
                    return [_name_of(each) for each in names], found
    return [], ()


def _name_of(column: Any) -> str:
    """The name of a column that is a text, or `{"name": "email", "type": "text"}`."""
    if isinstance(column, dict):
        column = next((column[key] for key in _PAIR_NAMES if key in column), "")
    return column if isinstance(column, str) else ""


def _pair_of(value: dict[Any, Any]) -> str | None:
    """The name in `{"name": "email", "value": "ann@example.org"}`."""
    names = (value.get(key) for key in _PAIR_NAMES)
    return next((name for name in names if isinstance(name, str)), None)


def _is_header(row: Any) -> bool:
    return isinstance(row, list) and len(row) > 1 and all(isinstance(name, str) for name in row)


def _written(number: float) -> str:
    """A number as text: 5551234567.0 as 5551234567. One that can't be anyone's is empty."""
    if abs(number) >= 10**_LONGEST_NUMBER or not math.isfinite(number):
        return ""
    return str(int(number) if number == int(number) else number)


def _text_of(data: bytes) -> tuple[str, bool]:
    """The text of a file, up to the last line that is whole, and whether that is not all."""
    # Whoever keeps the beginning of a file keeps that much.
    is_cut = len(data) >= MOST_FILE
    if is_cut:
        data = data[:MOST_FILE]
        data = data[: data.rfind(b"\n") + 1]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), is_cut
    try:
        return data.decode("utf-8-sig"), is_cut
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), is_cut
