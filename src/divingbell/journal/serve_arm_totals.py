"""Sums of what clients of `serve` use, by the arm of an experiment that their users are in.

They stand in the file of the totals (divingbell.journal.totals), in a table of their own. Tokens of
direct calls are an estimate by their characters, and the definitions of tools, which a client that
calls directly has its model read as well, are not in it: the arm without code looks cheaper than it
is.
"""

import sqlite3
from dataclasses import dataclass

from divingbell.journal import tokens
from divingbell.journal.day_table import DayTable
from divingbell.journal.events import CallEnded
from divingbell.models import Ledger

TABLE = DayTable(
    "serve_arm_days", ("executions", "calls", "direct_calls", "read", "direct"), by=("arm",)
)


@dataclass(frozen=True, slots=True)
class Used:
    """What one execution or one direct call of a user has used."""

    arm: str
    executions: int = 0
    calls: int = 0
    """Of tools, by code."""
    direct_calls: int = 0
    read: int = 0
    """Tokens that passed through the model."""
    direct: int = 0
    """Tokens that would have, without code."""


@dataclass(frozen=True, slots=True)
class ServeArmSums:
    """The sums over what is used in one arm."""

    users: int
    executions: int
    calls: int
    direct_calls: int
    read: int
    direct: int


def of_ledger(arm: str, ledger: Ledger) -> Used:
    """Return what an execution has used."""
    return Used(arm, 1, ledger.calls, 0, ledger.read, ledger.direct)


def of_call(arm: str, event: CallEnded) -> Used:
    """Return what a direct call has used."""
    estimate = tokens_of(event)
    return Used(arm, direct_calls=1, read=estimate, direct=estimate)


def tokens_of(event: CallEnded) -> int:
    """Return about how many tokens of a direct call its model has read and written."""
    given = sum(len(value) for value in event.arguments.values() if isinstance(value, str))
    blocks = getattr(event.result, "content", None) or ()
    shown = sum(len(block.text) for block in blocks if block.type == "text")
    return round((given + shown) / tokens.CHARACTERS_PER_TOKEN)


def add(connection: sqlite3.Connection, day: str, user: str, used: Used) -> None:
    """Add what was used."""
    amounts = {name: getattr(used, name) for name in TABLE.counted}
    TABLE.add(connection, (day, user, used.arm), amounts)


def read(connection: sqlite3.Connection, since: str) -> dict[str, ServeArmSums]:
    """Return the sums from a day on, by arm."""
    rows = TABLE.sums(connection, "arm", (since,), count="user")
    return {arm: ServeArmSums(*values) for arm, *values in rows}
