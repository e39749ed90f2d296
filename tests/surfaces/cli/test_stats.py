"""`divingbell stats`: what it prints, for people and for programs."""

import json
import sqlite3
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.journal.events import AnswerEnded
from divingbell.journal.totals import Totals
from divingbell.models import Ledger, ToolUse
from divingbell.principal import Principal
from divingbell.surfaces.cli.stats import show

LEDGER = Ledger(
    code_tokens=100,
    output_tokens=200,
    direct_definition_tokens=20_000,
    direct_call_tokens=10_000,
    calls=3,
    tools=(ToolUse("github.list", 2, 9_000), ToolUse("evil.\x1b[2J[red]x", 1, 1_000)),
)


@pytest.fixture
async def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "ledger.db"
    kept = Totals(path)
    kept.record(LEDGER, "anna")
    kept.record(LEDGER, "anna")
    await kept.close()
    return path


async def test_the_tables_show_what_was_saved(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(path=path) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "day executions calls tokens read directly saved" in shown
    assert "together 2 6 600 60,000 99.0%" in shown
    assert "github 4 18,000" in shown and "github.list 4 18,000" in shown
    assert not any("anna" in line for line in shown)  # one user: no table of users


async def test_names_of_servers_do_not_control_the_terminal(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(path=path)
    shown = capsys.readouterr().out
    assert "evil.\\x1b[2J[red]x" in shown and "\x1b" not in shown


async def test_several_users_have_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Totals(path)
    kept.record(Ledger(code_tokens=5, estimated=True), "bert")
    await kept.close()
    show(path=path)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "anna 2 6 600 60,000 99.0%" in shown and "bert 1 0 5 ~ 0 –" in shown
    assert "~ 1 executions were too long to be counted whole." in shown


async def test_programs_get_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(days=7, as_json=True, path=path) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["days"] == 7 and found["total"]["executions"] == 2
    assert found["total"]["saved"] == 59_400 and found["total"]["ratio"] == 0.99
    assert found["by_user"]["anna"]["calls"] == 6
    assert found["servers"][0] == {"name": "github", "calls": 4, "tokens": 18_000}


def test_with_nothing_there_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert show() == 0
    shown = capsys.readouterr().out
    assert "No model has run code here in the last 30 days." in shown
    assert "divingbell serve" in shown


@pytest.mark.parametrize("new", [0, 1])
async def test_what_an_earlier_version_has_counted_is_told_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], new: int
) -> None:
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE days (day TEXT, user TEXT, executions INTEGER)")
    with connection:
        connection.execute("INSERT INTO days VALUES ('9999-01-01', 'anna', 1234)")
    connection.close()
    kept = Totals(path)
    for _ in range(new):
        kept.record(LEDGER)
    await kept.close()
    assert show(path=path) == 0
    assert "1,234 executions are left out: an earlier version" in capsys.readouterr().out
    assert show(as_json=True, path=path) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["older_executions"] == 1234 and found["total"]["executions"] == new


@pytest.mark.parametrize("days", [0, -1, 401])
def test_days_that_are_not_kept_are_refused(days: int) -> None:
    with pytest.raises(ConfigError, match="--days is a number from 1 to 400"):
        show(days=days)


async def test_the_arms_of_an_experiment_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    kept = Totals(tmp_path / "ledger.db")
    for number in range(40):
        who, cost = Principal(f"user-{number % 8}"), 0.01 if number < 20 else None
        kept.take(AnswerEnded(who, "k", "m", "code", "code", "answered", 2, 1_000, 50, 400, cost))
    kept.take(
        AnswerEnded(Principal("x"), "k", "m", "direct", "direct", "turns", 9, 90_000, 60, 0, None)
    )
    await kept.close()
    assert show(path=tmp_path / "ledger.db") == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "code 8 40 100% 2.0 1,000 400 50 0.0100" in shown
    assert "direct 1 1 0% 9.0 90,000 0 60 –" in shown
    assert "direct: fewer than 30 answers, so a difference may be chance." in shown
    assert not any("No model has run code" in line for line in shown)
    show(as_json=True, path=tmp_path / "ledger.db")
    assert json.loads(capsys.readouterr().out)["arms"]["code"]["answers"] == 40
