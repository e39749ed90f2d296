"""What costs its sender nothing, in any number: all are in the log, and few have a record of their
own."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from divingbell.audit import record_budget, writer
from divingbell.journal.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallDecided,
    CellRefused,
    ExecutionRefused,
)
from divingbell.principal import Principal
from tests.audit import making
from tests.waiting import until

BOB = Principal("bob", "two", "library")


def _sum(found: list[dict[str, Any]], **wanted: str) -> tuple[int, int]:
    """The records that fit, and the refusals that they stand for."""
    fit = [each for each in found if all(each.get(name) == wanted[name] for name in wanted)]
    return len(fit), sum(each.get("count", 1) for each in fit)


async def test_refused_calls_without_end_are_counted(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        for call in range(1_000):
            log.note(CallDecided(call, "shop.refund", "deny", 1, "no refunds"))
            log.note(making.ended(call, "denied", was_sent=False, arguments={"order": call}))
        log.note(replace(making.ended(1_000, "denied", was_sent=False), principal=BOB))
    found = making.records(tmp_path)
    written, refused = _sum(found, outcome="denied", user="anna")
    assert refused == 1_000 and written <= record_budget.ONE_BY_ONE + 5
    [last] = [each for each in found if each.get("count", 0) > 1][-1:]
    assert (last["tool"], last["reason"]) == ("shop.refund", "no refunds")
    assert _sum(found, outcome="denied", user="bob") == (1, 1)  # who has a budget of their own
    assert making.verified(tmp_path).verdict == "whole"


async def test_refused_code_and_commands_are_counted_apart(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        for number in range(200):
            log.note(ExecutionRefused(making.ANNA, "key", "cell", f"again in {number} s", 1.0))
            log.note(ExecutionRefused(making.ANNA, "key", "command", "again in 1 s", 1.0))
            log.note(CellRefused(making.ANNA, "key", 1, "import os", "not that"))
    found = making.records(tmp_path)
    assert _sum(found, kind="execution.refused")[1] == 400
    assert _sum(found, kind="command.refused")[1] == 200
    assert len(found) <= record_budget.ONE_BY_ONE + 10


async def test_what_was_counted_is_written_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_budget, "EVERY", 0.02)
    async with making.writing(tmp_path) as log:
        for call in range(100):
            log.note(making.ended(call, "refused", was_sent=False))
        await until(
            lambda: _sum(making.records(tmp_path), outcome="refused")[1] == 100, "all are there"
        )


async def test_a_call_whose_start_is_recorded_has_an_end(tmp_path: Path) -> None:
    """It was about to leave, and its server was gone: its end is no refusal like others."""
    async with making.writing(tmp_path) as log:
        for call in range(100):
            await log.intend(making.sent(call))
            log.note(making.ended(call, "refused", was_sent=False))
    assert making.verified(tmp_path).open_calls == []


async def test_many_users_share_what_is_counted_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_budget, "MOST_COUNTS", 10)
    monkeypatch.setattr(record_budget, "ONE_BY_ONE", 1)
    async with making.writing(tmp_path) as log:
        for number in range(50):
            for call in range(2):
                ended = making.ended(call, "denied", was_sent=False)
                log.note(replace(ended, principal=Principal(f"user {number}", "", "library")))
    found = making.records(tmp_path)
    assert _sum(found, outcome="denied") == (50 + 10 + 1, 100)


async def test_counted_refusals_that_find_no_room_are_in_the_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with making.writing(tmp_path) as log:
        for call in range(100):
            log.note(making.ended(call, "denied", was_sent=False))
        log._make_ended()
        monkeypatch.setattr(writer, "MOST_WAITING", 0)
        log._budget.flush()
    *_, gap, last = map(json.loads, making.files(tmp_path)[0].read_text().splitlines())
    assert (gap["kind"], last["kind"]) == ("log.gap", "log.closed")
    assert gap["count"] == 100 - record_budget.ONE_BY_ONE
    assert making.verified(tmp_path).verdict == "whole"


async def test_searches_without_end_are_counted_and_leave_refusals_their_room(
    tmp_path: Path,
) -> None:
    async with making.writing(tmp_path) as log:
        for call in range(1_000):
            log.note(replace(making.ended(call, "ok", was_sent=False), name="search_tools"))
        log.note(making.ended(1_000, "denied", was_sent=False, arguments={"order": 7}))
    found = making.records(tmp_path)
    written, asked = _sum(found, outcome="ok", tool="search_tools")
    assert asked == 1_000 and written <= record_budget.ONE_BY_ONE + 5
    [denied] = [each for each in found if each.get("outcome") == "denied"]
    assert '"order": 7' in denied["arguments"]["text"]


async def test_approvals_without_end_are_counted_by_their_answers(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        for number in range(500):
            what = (number, "shop.refund", "anna", "key", 1)
            log.note(ApprovalAsked(*what, "order=7"))
            log.note(ApprovalAnswered(*what, "no" if number % 2 else "yes", ""))
    found = making.records(tmp_path)
    assert _sum(found, kind="approval.asked")[1] == 500
    # A call leaves after a yes: who said it of which one is never only counted.
    assert _sum(found, kind="approval.answered", answer="yes") == (250, 250)
    written, said = _sum(found, kind="approval.answered", answer="no")
    assert said == 250 and written < 250
    assert len(found) <= 250 + record_budget.ONE_BY_ONE + 10


async def test_calls_that_left_are_never_counted_together(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        for call in range(100):
            await log.intend(making.sent(call))
            log.note(making.ended(call, "ok"))
    found = making.records(tmp_path)
    assert _sum(found, kind="call.ended") == (100, 100)
