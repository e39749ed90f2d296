"""A table of sums in the file of the totals, for each day and user and perhaps one thing more."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str, ...]
"""A day, a user, and whatever else the table is by."""


@dataclass(frozen=True, slots=True)
class DayTable:
    """Sums by day, user and `by`."""

    name: str
    counted: tuple[str, ...]
    by: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    """Those of the counted that are no whole numbers."""

    @property
    def schema(self) -> str:
        """The statement that makes it, where it is not there yet."""
        keys = ("day", "user", *self.by)
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in keys)
        numbers = ", ".join(
            f"{name} {'REAL' if name in self.real else 'INTEGER'} NOT NULL" for name in self.counted
        )
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name} "
            f"({texts}, {numbers}, PRIMARY KEY ({', '.join(keys)})) WITHOUT ROWID;\n"
        )

    def add(self, connection: sqlite3.Connection, key: Key, amounts: Mapping[str, float]) -> None:
        """Add to the sums of a key; what is not named stays as it is."""
        self.add_all(connection, [(key, amounts)])

    def add_all(
        self, connection: sqlite3.Connection, added: Iterable[tuple[Key, Mapping[str, float]]]
    ) -> None:
        """Add to the sums of several keys."""
        columns = ("day", "user", *self.by, *self.counted)
        sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in self.counted)
        connection.executemany(
            f"INSERT INTO {self.name} ({', '.join(columns)}) "
            f"VALUES ({', '.join('?' for _ in columns)}) "
            f"ON CONFLICT ({', '.join(('day', 'user', *self.by))}) DO UPDATE SET {sums}",
            [(*key, *(amounts.get(name, 0) for name in self.counted)) for key, amounts in added],
        )

    def users(self, connection: sqlite3.Connection) -> list[str]:
        """Return the names of all users in it."""
        return [name for (name,) in connection.execute(f"SELECT DISTINCT user FROM {self.name}")]

    def rename(self, connection: sqlite3.Connection, user: str, name: str) -> None:
        """Have the sums of a user be those of another name, together with what that has."""
        columns = ("day", *self.by, *self.counted)
        found = connection.execute(
            f"SELECT {', '.join(columns)} FROM {self.name} WHERE user = ?", (user,)
        ).fetchall()
        keys = 1 + len(self.by)
        added = (
            ((row[0], name, *row[1:keys]), dict(zip(self.counted, row[keys:], strict=True)))
            for row in found
        )
        self.add_all(connection, added)
        connection.execute(f"DELETE FROM {self.name} WHERE user = ?", (user,))

    def sums(
        self,
        connection: sqlite3.Connection,
        group: str,
        wanted: tuple[str, ...],
        *,
        count: str = "",
        order: str = "1",
        most: int = -1,
    ) -> list[tuple[Any, ...]]:
        """Return a row for each group: what it is, how many different `count` are in it, and its
        sums. `wanted` is a first day, or that and a user. An earlier version may not have made the
        table: then there are none."""
        if not is_there(connection, self.name):
            return []
        counts = [f"count(DISTINCT {count})"] if count else []
        columns = [group, *counts, *(f"sum({name})" for name in self.counted)]
        condition = "day >= ?" if len(wanted) == 1 else "day >= ? AND user = ?"
        return connection.execute(
            f"SELECT {', '.join(columns)} FROM {self.name} WHERE {condition} "
            f"GROUP BY 1 ORDER BY {order} LIMIT {most}",
            wanted,
        ).fetchall()


def is_there(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether there is a table of that name."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
    return found.fetchone() is not None
