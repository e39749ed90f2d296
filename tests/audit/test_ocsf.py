"""Records as events of OCSF, checked with the models of others."""

import json
from pathlib import Path
from typing import Any

import pytest
from py_ocsf_models import OCSF_VERSION
from py_ocsf_models.events.base_event import BaseEvent
from py_ocsf_models.objects.api import API

from divingbell.audit import ocsf, reading, writer
from divingbell.audit.record_budget import ONE_BY_ONE
from divingbell.command import CommandResult
from divingbell.errors import NotRecorded
from divingbell.journal.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CellEnded,
    CellRefused,
    CellStarted,
    CommandEnded,
    CommandStarted,
    ExecutionRefused,
    JournalEvent,
    Revealed,
    SessionEnded,
    SessionOpened,
    SignedIn,
    SignInFailed,
    SkillChanging,
    SkillRemoved,
    SkillSaved,
    SkillUsed,
)
from divingbell.models import Failure, Result
from tests.audit import making
from tests.audit.test_log import full

EVERY_KIND = {
    kind for kind in reading.KINDS if not any(each.startswith(f"{kind}.") for each in reading.KINDS)
}
REFUSED = int(ONE_BY_ONE) + 3
"""Calls that go nowhere: some of them are only counted."""
WHERE = (making.ANNA, "key", 1)
HAPPENED: tuple[JournalEvent, ...] = (
    SessionOpened(making.ANNA, "s", "key"),
    CellStarted(*WHERE, "1 / 0"),
    CellEnded(*WHERE, "1 / 0", Result("error", error=Failure("ZeroDivisionError", "by zero"))),
    CellEnded(*WHERE, "1", None),
    CellRefused(*WHERE, "import os", "line 1 imports os"),
    ExecutionRefused(making.ANNA, "key", "cell", "too many", 3.0),
    CommandStarted(*WHERE, "ls"),
    CommandEnded(*WHERE, "ls", CommandResult("error", exit_code=2)),
    ExecutionRefused(making.ANNA, "key", "command", "too many", 3.0),
    ApprovalAsked(1, "shop.refund", "anna", "key", 1, "order=1"),
    ApprovalAnswered(1, "shop.refund", "anna", "key", 1, "nobody", "there is nobody"),
    making.ended(1),
    *(making.ended(call, "denied", was_sent=False) for call in range(2, 2 + REFUSED)),
    SignedIn(making.ANNA, "github"),
    SignInFailed(making.ANNA, "github", "nobody signed in"),
    Revealed(making.ANNA, 2, "program"),
    SkillChanging(making.ANNA, "top-customers", "save", "key", 3),
    SkillSaved(making.ANNA, "top-customers", 2, "sha256:0", "session", "key", 3),
    SkillUsed(making.ANNA, "top-customers", 2, "key", 4, 120),
    SkillRemoved(making.ANNA, "top-customers", 2),
    SessionEnded(making.ANNA, "s", "key", "closed"),
)


async def write_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a log that has every kind of record, one that stands for several among them."""
    async with making.writing(folder) as log:
        await log.check()
        await log.intend(making.sent(1, order=2))
        for event in HAPPENED:
            log.note(event)
        await log.check()  # all that was noted is written
        with full(folder), monkeypatch.context() as patched:
            patched.setattr(writer, "MOST_WAITING", 1)
            for _ in range(3):
                log.note(SignedIn(making.ANNA, "github"))
            with pytest.raises(NotRecorded):
                await log.check()


def check(event: dict[str, Any]) -> None:
    """Raise where an event is none of those of OCSF."""
    BaseEvent.model_validate(event)
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["metadata"]["version"] == OCSF_VERSION
    if event["class_uid"] == 6003:
        API.model_validate(event["api"])
        assert event["actor"]["user"]["name"] == "anna" and "src_endpoint" in event
    if event["class_uid"] == 3002:
        assert event["user"]["name"] == "anna" and event["service"]["name"] == "github"


async def test_every_kind_of_record_is_an_event_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_every_kind(tmp_path, monkeypatch)
    found = making.records(tmp_path)
    assert {record["kind"] for record in found} == EVERY_KIND
    [counted] = [record for record in found if record["kind"] == "call.ended" and "count" in record]
    assert counted["count"] > 1
    events = [json.loads(json.dumps(ocsf.event_of(record))) for record in found]
    for event in events:
        check(event)
    assert [event["unmapped"] for event in events] == found
    classes = {record["kind"]: ocsf.event_of(record)["class_uid"] for record in found}
    activities = ("call.", "execution.", "command.", "approval.", "skill.", "revealed")
    assert {kind for kind, number in classes.items() if number == 6003} == {
        kind for kind in EVERY_KIND if kind.startswith(activities)
    }
    assert {kind for kind, number in classes.items() if number == 3002} == {
        "signed_in",
        "sign_in.failed",
    }
    statuses = {(event["unmapped"]["kind"], event["status"]) for event in events}
    assert {
        ("execution.ended", "Failure"), ("execution.refused", "Failure"),
        ("command.ended", "Failure"), ("command.refused", "Failure"),
        ("approval.answered", "Failure"), ("call.ended", "Success"), ("call.ended", "Failure"),
        ("signed_in", "Success"), ("sign_in.failed", "Failure"), ("skill.saved", "Success"),
    } <= statuses  # fmt: skip


async def test_a_denial_is_a_failure_that_stands_out(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        log.note(making.ended(2, "denied", was_sent=False))
    event = ocsf.event_of(making.records(tmp_path)[1])
    assert (event["status"], event["severity"]) == ("Failure", "Medium")
