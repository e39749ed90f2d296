"""What is in the log: who, which session, which cell and which call; never what ran."""

import logging
import re
from typing import Any

import pytest

from divingbell import Divingbell, logs
from divingbell.border.privacy.blotter import BLOTTER
from divingbell.journal import log_lines
from divingbell.journal.events import (
    CallEnded,
    CellEnded,
    CellRefused,
    ExecutionRefused,
    Revealed,
    SkillRemoved,
    SkillSaved,
)
from divingbell.principal import Principal

SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _searched() -> None:
    """Lines are searched exactly: before that is possible, numbers are left out of them."""
    BLOTTER.make().join(60)


def marks_of(record: logging.LogRecord) -> tuple[Any, ...]:
    return tuple(
        getattr(record, f"bell_{name}", "missing") for name in ("session", "user", "cell", "call")
    )


async def test_each_session_and_each_cell_has_a_record(
    bell: Divingbell, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "divingbell"):
        async with bell.session("logged", user="ada") as session:
            await session.run(f"print({SECRET!r}); {SECRET!r}", context={"x": SECRET})
            await session.run("1 / 0")
            key = session.key
    lines = {
        re.sub(r", \d+ ms$", "", record.getMessage()): marks_of(record)
        for record in caplog.records
        if getattr(record, "bell_session", None) == key
    }
    assert lines == {
        "session logged of ada opened": (key, "ada", None, None),
        f"session {key}: cell 1: ok": (key, "ada", 1, None),
        f"session {key}: cell 2: error": (key, "ada", 2, None),
        "session logged of ada closed": (key, "ada", None, None),
    }
    records = "".join(repr(vars(record)) for record in caplog.records)
    assert SECRET not in caplog.text + records


def _call(name: str) -> CallEnded:
    arguments = {"key": SECRET}
    return CallEnded(
        7, Principal("ada"), "k", 3, "code", "tool", name, "failed", "tool_error", True,
        arguments, SECRET.encode(), SECRET, SECRET.encode(), 0.012,
    )  # fmt: skip


def test_a_call_has_one_on_the_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "divingbell"):
        log_lines.write(_call("shop.get\norder\x1b[31m" + "x" * 1000))
    [record] = caplog.records
    assert record.levelno == logging.DEBUG
    assert marks_of(record) == ("k", "ada", 3, 7)
    assert record.getMessage().startswith("session k: shop.get order")
    assert record.getMessage().endswith(": tool_error, 12 ms")
    assert len(record.getMessage()) < 200
    assert SECRET not in repr(vars(record)) and "\x1b" not in record.getMessage()


def test_nothing_is_put_together_for_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logs, "marks", None)  # which would fail if it were called
    with caplog.at_level(logging.WARNING, "divingbell"):
        log_lines.write(_call("shop.get"))
        log_lines.write(CellEnded(Principal(), "k", 1, SECRET, None))
    assert not caplog.records


def test_a_cell_whose_caller_has_left_has_one_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "divingbell"):
        log_lines.write(CellEnded(Principal(), "k", 1, SECRET, None))
    [record] = caplog.records
    assert record.getMessage() == "session k: cell 1: its caller has left, 0 ms"
    assert marks_of(record) == ("k", None, 1, None)


def test_a_cell_that_was_refused_has_one_without_its_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "divingbell"):
        log_lines.write(CellRefused(Principal("ada"), "k", 2, SECRET, f"writes to {SECRET}"))
    [record] = caplog.records
    assert record.getMessage() == "session k: cell 2: refused"
    assert marks_of(record) == ("k", "ada", 2, None)


def test_an_execution_that_was_over_its_rate_has_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "divingbell"):
        log_lines.write(ExecutionRefused(Principal("ada"), "k", "command", SECRET, 3.0))
    [record] = caplog.records
    assert record.getMessage() == "session k: command: refused, over its rate"
    assert marks_of(record) == ("k", "ada", None, None)


@pytest.mark.parametrize("count", [1, 3])
def test_values_that_were_revealed_are_counted(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "divingbell"):
        log_lines.write(Revealed(Principal("ada", "c"), count, "program"))
    [record] = caplog.records
    values = "1 value" if count == 1 else "3 values"
    assert record.getMessage() == f"{values} of ada: revealed to a program"
    assert marks_of(record) == (None, "ada", None, None)


def test_skills_that_come_and_go_are_told(caplog: pytest.LogCaptureFixture) -> None:
    ada = Principal("ada", "c")
    with caplog.at_level(logging.INFO, "divingbell"):
        log_lines.write(SkillSaved(ada, "top-customers", 2, "sha256:0", "session"))
        log_lines.write(SkillRemoved(ada, "top-customers", 2))
    assert [record.getMessage() for record in caplog.records] == [
        "skill top-customers of ada: version 2 saved (session)",
        "skill top-customers of ada: removed",
    ]
