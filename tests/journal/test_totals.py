"""Sums on disk: added up, private, and never in the way."""

import asyncio
import logging
import os
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from divingbell.border.written_names import WrittenNames
from divingbell.errors import ConfigError
from divingbell.journal import tokens, totals
from divingbell.journal.answer_totals import AnswerSums
from divingbell.journal.combination_totals import MOST_A_DAY, Combination
from divingbell.journal.events import AnswerEnded, CallEnded, CellEnded, ExecutionRefused
from divingbell.journal.serve_arm_totals import ServeArmSums
from divingbell.journal.totals import ToolTotal, Totals, report
from divingbell.models import Ledger, Result, ToolUse
from divingbell.principal import Principal
from divingbell.settings.vault import VaultSettings

PATIENCE = 30.0
LEDGER = Ledger(
    code_tokens=10,
    output_tokens=20,
    overhead_tokens=5,
    direct_definition_tokens=1000,
    direct_call_tokens=400,
    calls=3,
    images=1,
    tools=(ToolUse("github.list", 2, 300), ToolUse("time.now", 1, 100)),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.db"


async def recorded(path: Path, *entries: tuple[Ledger, str]) -> None:
    kept = Totals(path)
    for ledger, user in entries:
        kept.record(ledger, user)
    async with asyncio.timeout(PATIENCE):
        await kept.close()


async def test_refusals_are_counted_by_user_and_in_no_other_figure(path: Path) -> None:
    kept = Totals(path)
    for user, client in (
        ("anna", "http"),
        ("anna", "http"),
        ("bert", "stdio"),
        ("carl", "library"),
    ):
        kept.take(ExecutionRefused(Principal(user, "", client), "key", "cell", "again in 1 s", 1.0))
    kept.record(LEDGER, "anna")
    async with asyncio.timeout(PATIENCE):
        await kept.close()
    found = report(path, 7)
    assert found.refused == {"anna": 2, "bert": 1}
    assert found.total.executions == 1 and list(found.users) == ["anna"]


async def test_ledgers_are_added_up_by_day_user_server_and_tool(path: Path) -> None:
    await recorded(path, (LEDGER, "anna"), (LEDGER, "anna"))
    await recorded(path, (Ledger(code_tokens=1, estimated=True), "bert"))
    found = report(path, 7)
    assert found.total.executions == 3 and found.total.calls == 6
    assert found.total.read == 71 and found.total.direct == 2800
    assert found.total.saved == 2729 and found.total.ratio == pytest.approx(2729 / 2800)
    assert found.total.estimated == 1 and found.total.images == 2
    assert list(found.days) == [datetime.now(UTC).date().isoformat()] or len(found.days) == 2
    assert {user: totals.executions for user, totals in found.users.items()} == {
        "anna": 2,
        "bert": 1,
    }
    assert found.servers == (ToolTotal("github", 4, 600), ToolTotal("time", 2, 200))
    assert found.tools == (ToolTotal("github.list", 4, 600), ToolTotal("time.now", 2, 200))


async def test_users_whose_names_are_personal_are_told_apart_and_not_named(
    path: Path, tmp_path: Path
) -> None:
    ann, bea, carl = "ann@example.org", "bea@example.org", "carl"
    await recorded(path, (LEDGER, ann), (LEDGER, carl))  # as an earlier version has written them
    names = WrittenNames(VaultSettings(), tmp_path / "keys", lambda said: None)
    kept = Totals(path, written=names.of)
    for user in (ann, bea, ann, carl):
        kept.record(LEDGER, user)
    async with asyncio.timeout(PATIENCE):
        await kept.close()

    written = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"example.org" not in written and b"carl" in written
    users = report(path, 7).users
    assert len(users) == 3 and users["carl"].executions == 2
    assert [name.split()[0] for name in users] == ["[EMAIL]", "[EMAIL]", "carl"]
    # Their own sums are found by those who have the key; another start writes the same names.
    again = WrittenNames(VaultSettings(), tmp_path / "keys")
    found = {user: report(path, 7, user, again.of).total.executions for user in (ann, bea, carl)}
    assert found == {ann: 3, bea: 1, carl: 2}
    without = WrittenNames(VaultSettings(), tmp_path / "none")
    assert report(path, 7, ann, without.of).total.executions == 0
    assert [again.of(name) for name in users] == list(users)


def test_without_a_file_there_is_nothing(path: Path) -> None:
    found = report(path, 7)
    assert found.total.executions == 0 and found.total.ratio == 0.0 and found.days == {}
    assert not path.exists()


async def test_days_that_are_not_asked_for_are_left_out(path: Path) -> None:
    await recorded(path, (LEDGER, "anna"))
    old = (datetime.now(UTC).date() - timedelta(days=10)).isoformat()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE model_days SET day = ?", (old,))
        connection.execute("UPDATE model_tools SET day = ?", (old,))
    connection.close()
    assert report(path, 5).total.executions == 0 and report(path, 5).tools == ()
    assert list(report(path, 20).days) == [old]


async def test_days_long_ago_are_forgotten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await recorded(path, (LEDGER, "anna"))
    monkeypatch.setattr(totals, "_first_day", lambda days: "9999-01-01")
    await recorded(path, (Ledger(), "bert"))
    monkeypatch.undo()
    assert list(report(path, 2).users) == ["bert"]


async def test_the_files_are_private(path: Path) -> None:
    kept = Totals(path)
    kept.record(LEDGER)
    await kept.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_several_can_make_the_file_at_once(path: Path) -> None:
    for turn in range(40):
        new = path.with_name(f"{turn}.db")
        stores = [Totals(new) for _ in range(3)]
        for each in stores:
            each.record(LEDGER, "anna")
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(each.close() for each in stores))
        assert report(new, 2).total.executions == len(stores)


async def test_several_processes_can_write(path: Path) -> None:
    one, other = Totals(path), Totals(path)
    for _ in range(50):
        one.record(LEDGER, "anna")
        other.record(LEDGER, "anna")
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(one.close(), other.close())
    assert report(path, 2).total.executions == 100


async def test_hostile_names_are_stored_as_text(path: Path) -> None:
    name = "a.'); DROP TABLE model_days; --\ud800" + "x" * 10_000
    await recorded(path, (Ledger(calls=1, tools=(ToolUse(name, 1, 1),)), "\ud800"))
    [tool] = report(path, 2).tools
    assert tool.name.startswith("a.'); DROP TABLE model_days; --?x")
    assert len(tool.name) == totals.MAX_NAME


async def test_a_disk_that_refuses_is_logged_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        await recorded(tmp_path / "file" / "ledger.db", (LEDGER, "anna"))
    assert "can't be written" in caplog.text


async def test_a_number_too_large_for_the_file_breaks_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await recorded(path, (Ledger(code_tokens=10**30), "anna"))
    assert "can't be written" in caplog.text


async def test_after_closing_nothing_is_taken(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = Totals(path)
    await kept.close()
    await kept.close()
    with caplog.at_level(logging.WARNING):
        kept.record(LEDGER)
    assert "not added" in caplog.text


def test_a_file_of_another_kind_is_told(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("this is no database, though it is long enough to be one" * 100)
    with pytest.raises(ConfigError, match="can't be read"):
        report(path, 7)


async def test_a_file_that_is_there_is_opened_by_sqlite_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing another descriptor of it would drop the locks of every connection of ours."""
    await recorded(path, (LEDGER, "ann"))
    opened: list[int] = []
    real = os.open

    def watched(name: str | Path, flags: int, *rest: int, **more: int) -> int:
        descriptor = real(name, flags, *rest, **more)
        if name == path:
            opened.append(descriptor)
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    await recorded(path, (LEDGER, "ann"))
    assert opened == [] and report(path, 1).total.executions == 2


# A file of an earlier version, which counted commands, and definitions with every session

OLD = """
CREATE TABLE days (
    day TEXT NOT NULL, user TEXT NOT NULL,
    executions INTEGER NOT NULL, calls INTEGER NOT NULL,
    code_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, overhead_tokens INTEGER NOT NULL,
    direct_definition_tokens INTEGER NOT NULL, direct_call_tokens INTEGER NOT NULL,
    images INTEGER NOT NULL, estimated INTEGER NOT NULL,
    PRIMARY KEY (day, user)
) WITHOUT ROWID;
CREATE TABLE tools (
    day TEXT NOT NULL, user TEXT NOT NULL, tool TEXT NOT NULL,
    calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (day, user, tool)
) WITHOUT ROWID;
"""


@pytest.fixture
def old(path: Path) -> Path:
    path.parent.mkdir(mode=0o700)
    today = datetime.now(UTC).date()
    connection = sqlite3.connect(path)
    connection.executescript(OLD)
    with connection:
        for day, times in ((today, 7), (today - timedelta(days=500), 3)):
            numbers = (times, 0, 1, 1, 0, 42_000 * times, 0, 0, 0)
            values = (day.isoformat(), "", *numbers)
            connection.execute(f"INSERT INTO days VALUES ({', '.join('?' * 11)})", values)
            use = (day.isoformat(), "", "a.b", times, 1)
            connection.execute("INSERT INTO tools VALUES (?, ?, ?, ?, ?)", use)
    connection.close()
    return path


def test_what_was_counted_in_another_way_is_told_and_not_added_up(old: Path) -> None:
    found = report(old, 7)
    assert found.total.direct == 0 and found.total.executions == 0 and found.tools == ()
    assert found.older == 7 and report(old, 1).older == 7


async def test_new_totals_stand_beside_old_ones(old: Path) -> None:
    await recorded(old, (LEDGER, "anna"))
    found = report(old, 400)
    assert found.total.executions == 1 and found.total.direct == LEDGER.direct
    assert found.older == 7  # what was too old to be kept is gone
    assert [tool.name for tool in found.tools] == ["github.list", "time.now"]


async def test_a_version_that_still_writes_the_old_way_changes_nothing_here(old: Path) -> None:
    await recorded(old, (LEDGER, "anna"))
    connection = sqlite3.connect(old)
    with connection:
        connection.execute("UPDATE days SET executions = executions + 1")
    connection.close()
    assert report(old, 7).total.executions == 1 and report(old, 7).older == 8


async def test_answers_are_added_up_by_the_arm_of_an_experiment(path: Path) -> None:
    kept = Totals(path)
    for user, arm, turns, cost, reason in (
        ("anna", "code", 2, 0.01, "answered"),
        ("anna", "code", 4, None, "turns"),
        ("bert", "code", 3, 0.03, "answered"),
        ("carl", "direct", 9, 0.5, "answered"),
        ("carl", "", 100, 5.0, "answered"),
    ):
        who = Principal(user, "", "library")
        usage = (1000, 10, 400, cost, 100, 1100)
        model = "m" if arm else "other"
        kept.take(AnswerEnded(who, "k", model, "code", arm, reason, turns, *usage))
    async with asyncio.timeout(PATIENCE):
        await kept.close()
    found = report(path, 7)
    assert found.answers["other"] == AnswerSums(1, 1, 1, 100, 1000, 400, 100, 10, 1100, 5.0, 1)
    assert found.answers["m"].answers == 4, "with an arm or without"
    assert set(found.arms) == {"code", "direct"}
    assert found.arms["code"] == AnswerSums(2, 3, 2, 9, 3000, 1200, 300, 30, 3300, 0.04, 2)
    assert found.arms["direct"].turns == 9
    assert set(found.arms) == {"code", "direct"}, "others are no part of it"
    assert found.total.executions == 0


# Combinations


def _used(*tools: str) -> Ledger:
    return Ledger(tools=tuple(ToolUse(name, 1, 1) for name in tools))


async def test_tools_that_are_used_together_are_counted(path: Path) -> None:
    many = [f"a.t{number}" for number in range(7)]
    together = [_used("b.y", "a.x"), _used("a.x", "b.y"), _used("a.x"), _used(*many)]
    await recorded(path, *((ledger, "anna") for ledger in together), (together[0], "bert"))
    assert report(path, 7).combinations == (
        Combination("a.x + b.y", 3),
        Combination("a.t0 + a.t1 + a.t2 + a.t3 + a.t4 + …", 1),
    )


async def test_only_so_many_combinations_of_a_day_are_told_apart(path: Path) -> None:
    pairs = [_used("a.x", f"b.t{number}") for number in range(MOST_A_DAY + 5)]
    await recorded(path, *((ledger, "anna") for ledger in [*pairs, pairs[0]]))
    found = {one.tools: one.executions for one in report(path, 7).combinations}
    assert found["others"] == 5 and found["a.x + b.t0"] == 2


# Arms of `serve`


async def test_what_clients_use_is_told_apart_by_arm(path: Path) -> None:
    arms = {"anna": "code", "bert": "direct"}
    kept = Totals(path, arms.get)
    for user in ("anna", "bert", "carl"):
        whose = Principal(user, "", "http")
        kept.take(CellEnded(whose, "k", 1, "1", Result("ok", ledger=LEDGER)))
        result = CallToolResult(content=[TextContent(text="x" * 80)])
        for by in ("client", "code"):
            call: Any = (1, whose, "k", 1, by, "tool", "shop.buy", "ok", "", True)
            kept.take(CallEnded(*call, {"what": "y" * 20}, b"", result, b"", 0.1))
    async with asyncio.timeout(PATIENCE):
        await kept.close()
    estimate = round(100 / tokens.CHARACTERS_PER_TOKEN)
    each = ServeArmSums(1, 1, 3, 1, LEDGER.read + estimate, LEDGER.direct + estimate)
    assert report(path, 7).serve_arms == {"code": each, "direct": each}
