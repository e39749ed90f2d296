"""Sums of the answers of agents, by the arm of an experiment that their users are in.

They stand in the file of the totals (divingbell.journal.totals), in a table of their own.
"""

import sqlite3
from dataclasses import dataclass

from divingbell.journal.events import AnswerEnded

TABLE = "arm_days"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    day TEXT NOT NULL, user TEXT NOT NULL, arm TEXT NOT NULL,
    answers INTEGER NOT NULL, answered INTEGER NOT NULL, turns INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cost REAL NOT NULL, priced INTEGER NOT NULL,
    PRIMARY KEY (day, user, arm)
) WITHOUT ROWID;
"""
_COUNTED = (
    "answers", "answered", "turns", "input_tokens", "cached_tokens", "output_tokens", "cost",
    "priced",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArmSums:
    """The sums over the answers in one arm."""

    users: int
    answers: int
    answered: int
    """Those that did not stop at a limit or otherwise."""
    turns: int
    input_tokens: int
    """Those of the provider's cache included."""
    cached_tokens: int
    output_tokens: int
    cost: float
    """In US dollars, of those answers whose price is known."""
    priced: int
    """How many these are."""

    def per_answer(self, amount: float) -> float:
        """Return the mean of a sum."""
        return amount / self.answers if self.answers else 0.0


def add(connection: sqlite3.Connection, day: str, user: str, event: AnswerEnded) -> None:
    """Add an answer."""
    values = (
        1,
        int(event.reason == "answered"),
        event.turns,
        event.input_tokens,
        event.cached_tokens,
        event.output_tokens,
        event.cost or 0.0,
        int(event.cost is not None),
    )
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTED)
    marks = ", ".join("?" for _ in _COUNTED)
    connection.execute(
        f"INSERT INTO {TABLE} (day, user, arm, {', '.join(_COUNTED)}) VALUES (?, ?, ?, {marks}) "
        f"ON CONFLICT (day, user, arm) DO UPDATE SET {sums}",
        (day, user, event.arm, *values),
    )


def read(connection: sqlite3.Connection, since: str) -> dict[str, ArmSums]:
    """Return the sums from a day on, by arm."""
    sums = ", ".join(f"sum({name})" for name in _COUNTED)
    rows = connection.execute(
        f"SELECT arm, count(DISTINCT user), {sums} FROM {TABLE} WHERE day >= ? "
        "GROUP BY arm ORDER BY arm",
        (since,),
    )
    return {arm: ArmSums(*values) for arm, *values in rows}
