"""Sums of the ledgers on disk, for each day and user. What was run or called with is not kept.

They are of executions whose results a model read, and the definitions that it was spared count
once a conversation. The tables `days` and `tools` are of an earlier version, which counted the
definitions with every session, those of commands too: they are not added up any more.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.host import owned_folder
from divingbell.journal import answer_totals, combination_totals, serve_arm_totals
from divingbell.journal.answer_totals import AnswerSums
from divingbell.journal.combination_totals import Combination
from divingbell.journal.day_table import DayTable, is_there
from divingbell.journal.events import (
    AnswerEnded,
    CallEnded,
    CellEnded,
    ExecutionRefused,
    JournalEvent,
)
from divingbell.journal.serve_arm_totals import ServeArmSums, Used
from divingbell.journal.write_behind import WriteBehind
from divingbell.models import Ledger

log = logs.logger("divingbell.journal")

FILE_NAME = "ledger.db"
READ_BY_MODELS = ("stdio", "http")
"""The surfaces whose results models read; programs and people read those of the others."""
KEPT_DAYS = 400
MOST_WAITING = 10_000
"""Ledgers that wait to be written; with a disk that hangs, more are dropped."""
MAX_NAME = 200
MOST_USER = 1000
"""Characters of a user's name that are looked at."""
GATHERING = 1.0
"""Seconds that ledgers wait to be written together: else each is, just when its answer leaves."""
BUSY_TIMEOUT, PAUSE = 5.0, 0.02


@dataclass(frozen=True, slots=True)
class ToolTotal:
    """The calls of one tool, or of all tools of a server."""

    name: str
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums over some days."""

    executions: int = 0
    calls: int = 0
    code_tokens: int = 0
    output_tokens: int = 0
    overhead_tokens: int = 0
    direct_definition_tokens: int = 0
    direct_call_tokens: int = 0
    images: int = 0
    estimated: int = 0
    """Executions of which something was estimated."""

    @property
    def read(self) -> int:
        return self.code_tokens + self.output_tokens + self.overhead_tokens

    @property
    def direct(self) -> int:
        return self.direct_definition_tokens + self.direct_call_tokens

    @property
    def saved(self) -> int:
        return self.direct - self.read

    @property
    def ratio(self) -> float:
        return self.saved / self.direct if self.direct else 0.0


_DAYS = DayTable("model_days", tuple(item.name for item in fields(Sums)))
_TOOLS = DayTable("model_tools", ("calls", "tokens"), by=("tool",))
_REFUSED = DayTable("refused_days", ("executions",))
_TABLES = (
    _DAYS, _TOOLS, _REFUSED, answer_totals.TABLE, combination_totals.TABLE, serve_arm_totals.TABLE
)  # fmt: skip
_OLD_DAYS, _OLD_TOOLS, _OLD_ARMS = "days", "tools", "arm_days"


@dataclass(frozen=True, slots=True)
class Report:
    """The sums over some days, in all and by day, user, server and tool."""

    total: Sums
    days: dict[str, Sums]
    """By date, the oldest first."""
    users: dict[str, Sums]
    servers: tuple[ToolTotal, ...]
    """Those with the most tokens first."""
    tools: tuple[ToolTotal, ...]
    older: int = 0
    """Executions that an earlier version has counted, in its own way: in no other figure."""
    refused: dict[str, int] = field(default_factory=dict)
    """Executions that did not begin as their user was over a rate, by user: in no other figure."""
    answers: dict[str, AnswerSums] = field(default_factory=dict)
    """Answers of agents by their model, as its provider counts them: in no other figure."""
    arms: dict[str, AnswerSums] = field(default_factory=dict)
    """The same by the arm of an experiment, of those that are in one."""
    combinations: tuple[Combination, ...] = ()
    """Tools that were used together in one execution, the most frequent first."""
    serve_arms: dict[str, ServeArmSums] = field(default_factory=dict)
    """What clients of `serve` have used, by the arm of an experiment."""


Written = Callable[[str], str]
"""What is written of the name of a user: nothing that is personal."""
Counted = Ledger | AnswerEnded | Used | None
"""What is added; None for an execution that was refused."""
_Row = tuple[str, str, Counted]
"""A day, a user, and what is added."""
_making = threading.Lock()


class Totals:
    """Adds ledgers to the totals, in a thread of its own. It never fails, it logs."""

    def __init__(
        self,
        path: Path,
        arm_of: Callable[[str], str | None] = lambda user: None,
        is_read: Callable[[str], bool] = lambda key: False,
        written: Written = str,
        elsewhere: Callable[[Counted, str], None] | None = None,
    ) -> None:
        """`arm_of` says which arm of an experiment a user is in; `is_read`, whether a model reads
        what the session with this key shows, although no client of `serve` has it; `written`, what
        is written of the name of a user. `elsewhere` adds to totals that several processes have,
        and then nothing is added here."""
        self._elsewhere = elsewhere
        self._path = path
        self._arm_of = arm_of
        self._is_read = is_read
        self._written = written
        self._connection: sqlite3.Connection | None = None
        self._behind = WriteBehind("divingbell-ledger", self._write, self._finish, GATHERING)

    def take(self, event: JournalEvent) -> None:
        """Add the ledger of a cell whose result a model reads, a refusal, or an answer of an agent;
        see the journal."""
        if isinstance(event, AnswerEnded):
            self.record(event, event.principal.user)
        if not isinstance(event, CellEnded | ExecutionRefused | CallEnded):
            return
        user = event.principal.user
        if event.principal.client not in READ_BY_MODELS:
            if isinstance(event, CellEnded) and self._is_read(event.key):
                self._take_ledger(event, user)
            return
        if isinstance(event, ExecutionRefused):
            self.record(None, user)
        elif isinstance(event, CallEnded):
            is_direct = event.by == "client" and event.kind == "tool" and event.sent
            if is_direct and (arm := self._arm_of(user)):
                self.record(serve_arm_totals.of_call(arm, event), user)
        else:
            ledger = self._take_ledger(event, user)
            if ledger is not None and (arm := self._arm_of(user)):
                self.record(serve_arm_totals.of_ledger(arm, ledger), user)

    def _take_ledger(self, event: CellEnded, user: str) -> Ledger | None:
        """Add the ledger of a cell, and return it; None where there is none."""
        ledger = None if event.result is None else event.result.ledger
        if ledger is not None:
            self.record(ledger, user)
        return ledger

    def record(self, ledger: Counted, user: str = "") -> None:
        """Have a ledger, an answer or what an arm has used added, or with None a refusal; returns
        at once."""
        if self._elsewhere is not None:
            self._elsewhere(ledger, user)
            return
        day = datetime.now(UTC).date().isoformat()
        if not self._behind.add((day, user[:MOST_USER], ledger), MOST_WAITING):
            log.warning("the tokens of an execution are not added to the totals")

    async def close(self) -> None:
        """Write what waits, for a limited time."""
        await self._behind.close()

    def _finish(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _write(self, batch: "list[_Row]") -> None:
        try:
            if self._connection is None:
                self._connection = _open_patiently(self._path)
                _rename_users(self._connection, self._written)
            with self._connection:
                for day, name, ledger in batch:
                    user = _storable(self._written(name))
                    if ledger is None:
                        _REFUSED.add(self._connection, (day, user), {"executions": 1})
                    elif isinstance(ledger, AnswerEnded):
                        answer_totals.add(self._connection, day, user, ledger)
                    elif isinstance(ledger, Used):
                        serve_arm_totals.add(self._connection, day, user, ledger)
                    else:
                        _add(self._connection, day, user, ledger)
                        combination_totals.add(self._connection, day, user, ledger)
        except Exception as error:  # whatever it is, executions go on
            log.warning("the totals in %s can't be written: %s", self._path, error)


def _open_patiently(path: Path) -> sqlite3.Connection:
    """Open it, although another may be making it: SQLite itself does not wait for that."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            return _open(path)
        except sqlite3.OperationalError as error:
            # The low byte is the kind of error, what is above says more.
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


def _rename_users(connection: sqlite3.Connection, written: Written) -> None:
    """Have users written as they are now: an earlier version wrote their names as they are."""
    with connection:
        for table in _TABLES:
            for user in table.users(connection):
                if (name := _storable(written(user))) != user:
                    table.rename(connection, user, name)
        for old in filter(partial(is_there, connection), (_OLD_DAYS, _OLD_TOOLS, _OLD_ARMS)):
            for (user,) in connection.execute(f"SELECT DISTINCT user FROM {old}").fetchall():
                change = f"UPDATE OR REPLACE {old} SET user = ? WHERE user = ? AND user != ?"
                name = _storable(written(user))
                connection.execute(change, (name, user, name))


def _open(path: Path) -> sqlite3.Connection:
    owned_folder.make(path.parent, 0o700)
    # Made by us, for its mode: what SQLite puts beside it gets the same. Never opened when it is
    # there: closing any descriptor of a file drops this process's locks on it, and with them what
    # keeps two connections from writing over each other.
    with _making, contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # of names that are written otherwise now
        connection.executescript("".join(table.schema for table in _TABLES))
        with connection:
            oldest = _first_day(KEPT_DAYS)
            for name in (_OLD_DAYS, _OLD_TOOLS, _OLD_ARMS, *(table.name for table in _TABLES)):
                if is_there(connection, name):
                    connection.execute(f"DELETE FROM {name} WHERE day < ?", (oldest,))
    except BaseException:
        connection.close()
        raise
    return connection


def _add(connection: sqlite3.Connection, day: str, user: str, ledger: Ledger) -> None:
    amounts = {name: getattr(ledger, name) for name in _DAYS.counted if name != "executions"}
    _DAYS.add(connection, (day, user), {"executions": 1, **amounts})
    _TOOLS.add_all(
        connection,
        [
            ((day, user, _storable(use.name)), {"calls": use.calls, "tokens": use.tokens})
            for use in ledger.tools
        ],
    )


def _storable(name: str) -> str:
    return name[:MAX_NAME].encode("utf-8", "replace").decode()


def report(path: Path, days: int, user: str | None = None, written: Written = str) -> Report:
    """Return the sums of the last days, today among them; with a user, of that one alone, whose
    name is `written` so. It blocks for some milliseconds.

    Raises:
        ConfigError: there is a file, and it is not one of ours or can't be read.
    """
    if not path.exists():
        return Report(Sums(), {}, {}, (), ())
    try:
        with _reading(path) as connection:
            since = (_first_day(days),)
            if user is not None:
                return _report_of(connection, since[0], written(user[:MOST_USER]))
            return Report(
                older=_older(connection, since),
                answers=answer_totals.read(connection, *since, "model"),
                arms=answer_totals.read(connection, *since, "arm"),
                combinations=combination_totals.read(connection, *since),
                serve_arms=serve_arm_totals.read(connection, *since),
                refused=dict(_REFUSED.sums(connection, "user", since)),
                total=_total(connection, since),
                days=_sums(connection, "day", since),
                users=_sums(connection, "user", since),
                servers=_uses(connection, _SERVER, since),
                tools=_uses(connection, "tool", since),
            )
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"the totals in {path} can't be read: {error}. Move the file away to begin anew"
        ) from None


def _report_of(connection: sqlite3.Connection, since: str, user: str) -> Report:
    """Return the sums of one user: what is of others, or of all together, is not in it."""
    wanted = (since, _storable(user))
    return Report(
        total=_total(connection, wanted),
        days=_sums(connection, "day", wanted),
        users={},
        servers=_uses(connection, _SERVER, wanted),
        tools=_uses(connection, "tool", wanted),
    )


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT
    )
    try:
        yield connection
    finally:
        connection.close()


_SERVER = "substr(tool, 1, instr(tool || '.', '.') - 1)"


def _sums(connection: sqlite3.Connection, group: str, wanted: tuple[str, ...]) -> dict[str, Sums]:
    return {key: Sums(*values) for key, *values in _DAYS.sums(connection, group, wanted)}


def _total(connection: sqlite3.Connection, wanted: tuple[str, ...]) -> Sums:
    return _sums(connection, "''", wanted).get("", Sums())


def _older(connection: sqlite3.Connection, since: tuple[str]) -> int:
    if not is_there(connection, _OLD_DAYS):
        return 0
    [(count,)] = connection.execute(
        f"SELECT coalesce(sum(executions), 0) FROM {_OLD_DAYS} WHERE day >= ?", since
    )
    return int(count)


def _uses(
    connection: sqlite3.Connection, group: str, wanted: tuple[str, ...]
) -> tuple[ToolTotal, ...]:
    rows = _TOOLS.sums(connection, group, wanted, order="3 DESC, 1", most=100)
    return tuple(ToolTotal(*row) for row in rows)


def _first_day(days: int, today: date | None = None) -> str:
    today = today or datetime.now(UTC).date()
    return (today - timedelta(days=days - 1)).isoformat()
