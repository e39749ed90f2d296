"""Sums of which tools are used together in one execution.

They stand in the file of the totals (divingbell.journal.totals), in a table of their own.
"""

import sqlite3
from dataclasses import dataclass

from divingbell.journal.day_table import DayTable
from divingbell.models import Ledger

TABLE = DayTable("tool_combinations", ("executions",), by=("tools",))
MOST_TOOLS = 5
"""Tools that a combination names; of one with more the rest is "…"."""
MOST_A_DAY = 1_000
"""Combinations of a day that are told apart: code can make any number of them."""
OTHERS, BETWEEN = "others", " + "
MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class Combination:
    """Tools that were used together."""

    tools: str
    """Their names, with ` + ` between them."""
    executions: int


def add(connection: sqlite3.Connection, day: str, user: str, ledger: Ledger) -> None:
    """Add the combination of an execution that has used several tools."""
    names = sorted(use.name[:MAX_NAME].encode("utf-8", "replace").decode() for use in ledger.tools)
    if len(names) < 2:
        return
    rest = ["…"] if len(names) > MOST_TOOLS else []
    tools = BETWEEN.join([*names[:MOST_TOOLS], *rest])
    if not _is_known(connection, day, tools):
        tools = OTHERS
    TABLE.add(connection, (day, user, tools), {"executions": 1})


def _is_known(connection: sqlite3.Connection, day: str, tools: str) -> bool:
    """Whether a combination is there, or there is room for it."""
    [(count, found)] = connection.execute(
        f"SELECT count(DISTINCT tools), total(tools = ?) FROM {TABLE.name} WHERE day = ?",
        (tools, day),
    )
    return bool(found) or count < MOST_A_DAY


def read(connection: sqlite3.Connection, since: str) -> tuple[Combination, ...]:
    """Return those from a day on, the most frequent first."""
    rows = TABLE.sums(connection, "tools", (since,), order="2 DESC, 1", most=100)
    return tuple(Combination(*row) for row in rows)
