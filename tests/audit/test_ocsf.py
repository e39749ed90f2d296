"""Records as events of OCSF, checked with the models of others."""

import json
from pathlib import Path

from py_ocsf_models import OCSF_VERSION
from py_ocsf_models.events.base_event import BaseEvent
from py_ocsf_models.objects.api import API

from divingbell.audit import ocsf
from divingbell.journal.events import (
    CellStarted,
    Revealed,
    SessionOpened,
    SignedIn,
    SignInFailed,
    SkillRemoved,
    SkillSaved,
    SkillUsed,
)
from tests.audit import making


async def test_every_kind_of_record_is_an_event_that_others_can_read(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1, order=2))
        for event in (
            making.ended(1),
            making.ended(2, "denied", was_sent=False),
            CellStarted(making.ANNA, "key", 1, "1"),
            SessionOpened(making.ANNA, "s", "key"),
            SignedIn(making.ANNA, "github"),
            SignInFailed(making.ANNA, "github", "nobody signed in"),
            Revealed(making.ANNA, 2, "program"),
            SkillSaved(making.ANNA, "top-customers", 2, "sha256:0", "session", "key", 3),
            SkillUsed(making.ANNA, "top-customers", 2, "key", 4, 120),
            SkillRemoved(making.ANNA, "top-customers", 2),
        ):
            log.note(event)
    found = making.records(tmp_path)
    assert len(found) == 13
    for record in found:
        event = json.loads(json.dumps(ocsf.event_of(record)))
        BaseEvent.model_validate(event)
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
        assert event["metadata"]["version"] == OCSF_VERSION
        if event["class_uid"] == 6003:
            API.model_validate(event["api"])
            assert event["actor"]["user"]["name"] == "anna" and "src_endpoint" in event
    classes = {record["kind"]: ocsf.event_of(record)["class_uid"] for record in found}
    assert classes["call.started"] == classes["revealed"] == classes["skill.used"] == 6003
    assert classes["signed_in"] == 3002 and classes["log.begun"] == 0
    logons = [each for each in map(ocsf.event_of, found) if each["class_uid"] == 3002]
    assert [each["status"] for each in logons] == ["Success", "Failure"]
    for event in logons:
        assert event["user"]["name"] == "anna" and event["service"]["name"] == "github"


async def test_a_denial_is_a_failure_that_stands_out(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        log.note(making.ended(2, "denied", was_sent=False))
    event = ocsf.event_of(making.records(tmp_path)[1])
    assert (event["status"], event["severity"]) == ("Failure", "Medium")
