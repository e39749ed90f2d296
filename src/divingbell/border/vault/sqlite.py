"""The store of one machine: a SQLite file that only its owner can read."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from divingbell.border.vault.base import Counts, Row, Store, StoreFailed
from divingbell.host import owned_folder

FILE_NAME = "vault.db"
BUSY_TIMEOUT = 5.0
AT_ONCE = 500
"""Tokens in one question: SQLite takes 999 variables at least."""
FORGOTTEN_AT_ONCE = 5_000
"""Rows that are deleted together: those who ask for others wait for that long, a tenth of a second.
"""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS checks (name TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS conversations (
    name TEXT PRIMARY KEY, used REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (
    conversation TEXT NOT NULL, token TEXT NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (conversation, token)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_token ON kept (token);
"""
_IN_USE = "conversation IN (SELECT name FROM conversations WHERE used >= ?) "
Found = TypeVar("Found")


class SqliteStore(Store):
    """Rows in a file, read and written in a thread of its own."""

    def __init__(self, path: Path, keep: float, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._keep = keep
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="divingbell-vault")
        self._opened: sqlite3.Connection | None = None

    async def open(self, check: bytes) -> bytes:
        def checked(database: sqlite3.Connection) -> bytes:
            database.execute("INSERT OR IGNORE INTO checks VALUES ('key', ?)", (check,))
            [(sealed,)] = database.execute("SELECT sealed FROM checks WHERE name = 'key'")
            return bytes(sealed)

        return await self._do(checked)

    async def put(self, rows: Sequence[Row]) -> list[Row]:
        def keep(database: sqlite3.Connection) -> list[Row]:
            self._note(database, rows)
            there: list[Row] = []
            for row in rows:
                place = (row.conversation, row.token)
                written = database.execute(
                    "INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", (*place, row.sealed)
                )
                if not written.rowcount:
                    there += _rows(
                        database.execute(
                            "SELECT conversation, token, sealed FROM kept "
                            "WHERE conversation = ? AND token = ?",
                            place,
                        )
                    )
            return there

        return await self._do(keep)

    async def replace(self, rows: Sequence[Row]) -> None:
        def keep(database: sqlite3.Connection) -> None:
            self._note(database, rows)
            database.executemany(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)",
                [(row.conversation, row.token, row.sealed) for row in rows],
            )

        await self._do(keep)

    def _note(self, database: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """Note that the conversations of these are in use."""
        now = self._clock()
        database.executemany(
            "INSERT OR REPLACE INTO conversations VALUES (?, ?)",
            [(name, now) for name in {row.conversation for row in rows}],
        )

    async def get(self, conversation: str, tokens: Iterable[str]) -> list[Row]:
        where = f"conversation = ? AND {_IN_USE}AND "
        return await self._select(tokens, where, conversation, self._oldest)

    async def all_of(self, conversation: str, most: int) -> list[Row]:
        def look(database: sqlite3.Connection) -> list[Row]:
            return _rows(
                database.execute(
                    f"SELECT conversation, token, sealed FROM kept WHERE {_IN_USE}"
                    "AND conversation = ? LIMIT ?",
                    (self._oldest, conversation, most),
                )
            )

        return await self._do(look)

    async def anywhere(self, tokens: Iterable[str]) -> list[Row]:
        return await self._select(tokens)

    async def _select(
        self, tokens: Iterable[str], where: str = "", *given: str | float
    ) -> list[Row]:
        wanted = list(tokens)

        def look(database: sqlite3.Connection) -> list[Row]:
            found: list[Row] = []
            for start in range(0, len(wanted), AT_ONCE):
                some = wanted[start : start + AT_ONCE]
                marks = ",".join("?" * len(some))
                found += _rows(
                    database.execute(
                        "SELECT conversation, token, sealed FROM kept "
                        f"WHERE {where}token IN ({marks})",
                        (*given, *some),
                    )
                )
            return found

        return await self._do(look)

    async def used(self, conversations: Iterable[str]) -> None:
        names = list(conversations)

        def note(database: sqlite3.Connection) -> None:
            now = self._clock()
            database.executemany(
                "UPDATE conversations SET used = ? WHERE name = ?", [(now, name) for name in names]
            )

        await self._do(note)
        while await self._do(self._forget_some):
            pass

    @property
    def _oldest(self) -> float:
        """The time of the last use before which a conversation is over."""
        return self._clock() - self._keep

    def _forget_some(self, database: sqlite3.Connection) -> bool:
        """Delete rows of one conversation that is over; say whether there may be more."""
        found = database.execute(
            "SELECT name FROM conversations WHERE used < ? LIMIT 1", (self._oldest,)
        ).fetchone()
        if found is None:
            return False
        deleted = database.execute(
            "DELETE FROM kept WHERE conversation = ? AND token IN "
            "(SELECT token FROM kept WHERE conversation = ? LIMIT ?)",
            (*found, *found, FORGOTTEN_AT_ONCE),
        )
        if deleted.rowcount < FORGOTTEN_AT_ONCE:
            database.execute("DELETE FROM conversations WHERE name = ?", found)
        return True

    async def counts(self) -> Counts:
        def count(database: sqlite3.Connection) -> Counts:
            [(conversations,)] = database.execute("SELECT count(*) FROM conversations")
            kinds: dict[str, int] = {}
            for (token,) in database.execute("SELECT token FROM kept"):
                kind = token[1 : token.rfind("_")]
                kinds[kind] = kinds.get(kind, 0) + 1
            return Counts(conversations, kinds)

        return await self._do(count)

    async def close(self) -> None:
        def end() -> None:
            if self._opened is not None:
                self._opened.close()

        await asyncio.wrap_future(self._thread.submit(end))
        self._thread.shutdown(wait=False)

    async def _do(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        return await asyncio.wrap_future(self._thread.submit(self._done, work))

    def _done(self, work: Callable[[sqlite3.Connection], Found]) -> Found:
        try:
            if self._opened is None:
                self._opened = self._connect()
            with self._opened:
                return work(self._opened)
        except (sqlite3.Error, OSError) as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        owned_folder.make(self._path.parent, 0o700)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA secure_delete = ON")
            database.executescript(_SCHEMA)
        except BaseException:
            database.close()
            raise
        return database


def _rows(found: Iterable[tuple[str, str, bytes]]) -> list[Row]:
    return [Row(conversation, token, bytes(sealed)) for conversation, token, sealed in found]
