"""Tables that our own dataset server leaves as files, for sessions to take.

No other server may name files: what it says of them is looked at only where the entry of the
server is one of `datasets`, which this program starts itself. Even so a name means a file of the
one folder that was made for it, and nothing else.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from divingbell import text
from divingbell.errors import ToolFailed

VARIABLE = "DIVINGBELL_SPOOL"
"""The variable in which the dataset server is told where to put tables."""
TABLE = "divingbell/table"
"""The name under which its results say which file is the table."""
RULES = "fields.json"
"""The file in the spool that says which fields hold what is to be learned."""
VALUES = ".json"
"""The ending of a file beside a table: the values of its personal columns."""
MOST_VALUES = 8 << 20
"""Bytes of such a file: as much as is read of a text."""
_NAME = re.compile(r"[0-9a-f]{32}\.parquet")
MAX_REMARK = 300
MOST_NUMBER = 1 << 62


class SpooledTable:
    """A table that is a Parquet file, which is gone from its folder already."""

    def __init__(self, file: int, facts: Mapping[str, Any]) -> None:
        """Take over an open file; where that fails it is still the caller's."""
        self.rows = _number(facts, "rows")
        self.columns = _number(facts, "columns")
        self.memory = _number(facts, "memory")
        """Bytes that it takes as a DataFrame, about."""
        remark = facts.get("remark")
        self.remark = text.one_line(remark, MAX_REMARK) if isinstance(remark, str) else ""
        self.size = os.fstat(file).st_size
        self._file = os.fdopen(file, "rb")

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        return self._file.read(size)

    def close(self) -> None:
        """Let go of it; nobody else has it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def take(folder: Path, meta: Mapping[str, Any] | None) -> SpooledTable | None:
    """Take the table that a result names out of the folder; None if it names none.

    Raises:
        ToolFailed: it names what is no table of that folder.
    """
    path = _path_in(folder, meta)
    if path is None or meta is None:
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise ToolFailed("the table is not there any more: call it again", "tool_result") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ToolFailed("the dataset server named what is no file", "tool_result")
        path.unlink(missing_ok=True)
        return SpooledTable(file, meta[TABLE])
    except BaseException:
        os.close(file)
        raise


def take_values(folder: Path, meta: Mapping[str, Any] | None) -> str:
    """Take the values of the personal columns of a table out of the folder: JSON, which is data and
    not believed; empty if there are none. The table itself stays.

    Raises:
        ToolFailed: the result names what is no table of that folder.
    """
    table = _path_in(folder, meta)
    if table is None:
        return ""
    path = table.with_suffix(VALUES)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    with os.fdopen(file, "rb") as values:
        path.unlink(missing_ok=True)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_VALUES:
            raise ToolFailed("the dataset server left what is no list of values", "tool_result")
        return values.read(MOST_VALUES).decode(errors="replace")


def _path_in(folder: Path, meta: Mapping[str, Any] | None) -> Path | None:
    facts = (meta or {}).get(TABLE)
    if facts is None:
        return None
    name = facts.get("file") if isinstance(facts, Mapping) else None
    if type(name) is not str or _NAME.fullmatch(name) is None:
        raise ToolFailed("the dataset server named a file that is none of its own", "tool_result")
    return folder / name


def _number(facts: Mapping[str, Any], name: str) -> int:
    value = facts.get(name)
    if type(value) is not int or not 0 <= value < MOST_NUMBER:
        raise ToolFailed("the dataset server said something that makes no sense", "tool_result")
    return value
