"""Sums of the answers of agents, by the arm of an experiment that their users are in.

They stand in the file of the totals (divingbell.journal.totals), in a table of their own.
"""

import sqlite3
from dataclasses import dataclass

from divingbell.journal.day_table import DayTable
from divingbell.journal.events import AnswerEnded

TABLE = DayTable(
    "arm_days",
    (
        "answers", "answered", "turns", "input_tokens", "cached_tokens", "output_tokens", "cost",
        "priced",
    ),
    by=("arm",),
    real=("cost",),
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
    amounts = {
        "answers": 1,
        "answered": event.reason == "answered",
        "turns": event.turns,
        "input_tokens": event.input_tokens,
        "cached_tokens": event.cached_tokens,
        "output_tokens": event.output_tokens,
        "cost": event.cost or 0.0,
        "priced": event.cost is not None,
    }
    TABLE.add(connection, (day, user, event.arm), amounts)


def read(connection: sqlite3.Connection, since: str) -> dict[str, ArmSums]:
    """Return the sums from a day on, by arm."""
    rows = TABLE.sums(connection, "arm", (since,), count="user")
    return {arm: ArmSums(*values) for arm, *values in rows}
