"""Sums of the answers of agents, by their model and by the arm of an experiment.

They stand in the file of the totals (divingbell.journal.totals), in a table of their own.
"""

import sqlite3
from dataclasses import dataclass
from typing import Literal

from divingbell.journal.day_table import DayTable
from divingbell.journal.events import AnswerEnded

MAX_NAME = 200
TABLE = DayTable(
    "answer_days",
    (
        "answers", "answered", "turns", "input_tokens", "cached_tokens", "cache_written_tokens",
        "output_tokens", "counted_tokens", "cost", "priced",
    ),
    by=("model", "arm"),
    real=("cost",),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerSums:
    """The sums over some answers."""

    users: int
    answers: int
    answered: int
    """Those that did not stop at a limit or otherwise."""
    turns: int
    input_tokens: int
    """As the providers count them, those of their caches included."""
    cached_tokens: int
    """Read from a cache."""
    cache_written_tokens: int
    output_tokens: int
    counted_tokens: int
    """What was sent, as we count it: to be held against `input_tokens`."""
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
        "cache_written_tokens": event.cache_written_tokens,
        "output_tokens": event.output_tokens,
        "counted_tokens": event.counted_tokens,
        "cost": event.cost or 0.0,
        "priced": event.cost is not None,
    }
    TABLE.add(connection, (day, user, event.model[:MAX_NAME], event.arm), amounts)


def read(
    connection: sqlite3.Connection, since: str, by: Literal["model", "arm"]
) -> dict[str, AnswerSums]:
    """Return the sums from a day on, by model, or by arm for those that are in one."""
    rows = TABLE.sums(connection, by, (since,), count="user")
    return {name: AnswerSums(*values) for name, *values in rows if name}
