"""Code is looked at before it runs: warnings, questions and refusals reach whoever reads."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, InvalidInput, Session
from divingbell.events import ApprovalAsked, CellEnded, CellRefused, CellStarted, JournalEvent
from divingbell.gateway.policy.approvals import Approval, Approver
from divingbell.surfaces.cli import main

DENIED = {"rules": {"process": "deny"}}
ASKED = {"rules": {"process": "ask"}}


@asynccontextmanager
async def opened(
    review: dict[str, Any], on_approval: Approver | None = None
) -> AsyncIterator[tuple[Session, list[JournalEvent]]]:
    heard: list[JournalEvent] = []
    async with (
        Divingbell(
            pool=0, preload=(), review=review, on_approval=on_approval, on_event=heard.append
        ) as bell,
        bell.session() as session,
    ):
        yield session, heard


async def test_warnings_are_notes_and_the_code_runs(session: Session) -> None:
    result = await session.run("try:\n    import requests\nexcept ImportError:\n    x = 42\nx")
    assert (result.status, result.value) == ("ok", 42)
    [note] = result.notes
    assert note.startswith("before it ran: line 2 imports requests, which needs a network. There")
    assert (await session.run("x + 1")).notes == ()


async def test_a_cell_that_runs_out_of_time_is_told_where(session: Session) -> None:
    result = await session.run("i = 0\nwhile True:\n    i += 1", timeout=0.2)
    assert result.status == "timeout"
    assert any("line 2 loops without an end" in note for note in result.notes)


async def test_what_is_denied_does_not_run() -> None:
    async with opened(DENIED) as (session, heard):
        await session.run("x = 1")
        result = await session.run("x = 2\nimport os\nos.system('true')")
        assert (result.status, result.value, result.cell) == ("error", None, 2)
        assert result.error is not None and result.error.type == "CodeRefused"
        assert "line 3 starts a process with os.system. Do it in Python" in result.error.message
        assert (await session.run("x")).value == 1
        assert [event.type async for event in session.stream("!ls")] == ["done"]
    kinds = [type(event) for event in heard if isinstance(event, CellStarted | CellRefused)]
    assert kinds == [CellStarted, CellRefused, CellStarted, CellRefused]
    assert len([event for event in heard if isinstance(event, CellEnded)]) == 2


async def test_a_person_is_asked_and_a_yes_for_the_session_holds() -> None:
    asked: list[Approval] = []
    answers = ["no", "yes", "session"]

    async def approve(approval: Approval) -> str:
        asked.append(approval)
        return answers.pop(0)

    async with opened(ASKED, approve) as (session, heard):
        code = "import os\nos.system('exit 3') >> 8"
        result = await session.run(code)
        assert result.error is not None and result.error.type == "CodeRefused"
        assert "denied by the person who was asked" in result.error.message
        assert [(await session.run(code)).value for _ in range(3)] == [3, 3, 3]
    assert len(asked) == 3 and not answers
    assert (asked[0].tool, asked[0].session) == ("divingbell.run", session.id)
    assert asked[0].arguments == "line 2 starts a process with os.system"
    assert len([event for event in heard if isinstance(event, ApprovalAsked)]) == 3


async def test_without_anybody_to_ask_the_answer_is_no() -> None:
    async with opened(ASKED) as (session, _):
        result = await session.run("!ls")
        assert result.status == "error" and result.error is not None
        assert "needs approval" in result.error.message and "on_approval" in result.error.message


async def test_a_session_that_ends_while_the_person_thinks_runs_nothing() -> None:
    from divingbell import SessionClosed

    async def approve(approval: Approval) -> bool:
        await session.close()
        return True

    async with opened(ASKED, approve) as (session, heard):
        with pytest.raises(SessionClosed):
            await session.run("!ls")
    assert not [event for event in heard if isinstance(event, CellStarted)]


async def test_it_can_be_turned_off() -> None:
    async with opened({"enabled": False, **DENIED}) as (session, _):
        result = await session.run("import os\nos.system('true')")
        assert (result.status, result.notes) == ("ok", ())


async def test_a_program_sees_what_the_command_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"import requests\nfrom servers.shop import refund\nopen({str(tmp_path / 'ran')!r}, 'w')"
    (tmp_path / "plan.py").write_text(code)
    (tmp_path / "rules.toml").write_text('[review.rules]\nnetwork = "deny"\n')
    main(["review", str(tmp_path / "plan.py"), "--config", str(tmp_path / "rules.toml"), "--json"])
    shown = json.loads(capsys.readouterr().out)
    bell = Divingbell(config=tmp_path / "rules.toml")  # it is not started
    review = await bell.review(code)
    assert review.to_dict() | {"enabled": True} == shown
    assert (review.action, review.tools) == ("deny", ("shop.refund",))
    off = Divingbell(review={"enabled": False, "rules": {"network": "deny"}})
    assert await off.review(code) == review
    assert (await bell.review("x = 1\n" * 10_000)).findings[0].kind == "unread"
    assert (await bell.review("x = '\ud800'")).findings[0].kind == "syntax"
    with pytest.raises(InvalidInput, match="must be text, not bytes"):
        await bell.review(b"1")  # type: ignore[arg-type]
    assert not (tmp_path / "ran").exists()
