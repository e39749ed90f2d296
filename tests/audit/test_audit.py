"""The log of a Divingbell that runs: real code, real calls, real refusals."""

from pathlib import Path
from typing import Any

import pytest

from divingbell import Approval, Divingbell, NotRecorded, SkillRefused
from divingbell.events import Revealed
from tests.audit import making
from tests.audit.test_log import full
from tests.skills.catalogues import Reader
from tests.skills.samples import made

CALL = "from servers.host import refund\nrefund({order}, 'bob@example.org')"


def refund(order: int, to: str) -> str:
    """Pay back."""
    return f"{order}: paid back"


def _bell(folder: Path, mode: str = "on", **settings: Any) -> Divingbell:
    table = {"folder": str(folder / "log"), "heads": str(folder / "heads")}
    table |= settings.pop("audit_log", {})
    made: Any = {"audit": mode, "audit_log": table, "pool": 0, "preload": (), **settings}
    return Divingbell(tools=[refund], **made)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def test_executions_calls_commands_and_denials_are_recorded(tmp_path: Path) -> None:
    policy = {"rules": [{"tools": "host.refund", "action": "deny", "when": {"order": "13"}}]}
    async with _bell(tmp_path, policy=policy) as bell, bell.session(user="anna") as session:
        assert (await session.run(CALL.format(order=12))).status == "ok"
        assert (await session.run(CALL.format(order=13))).status == "error"
        await session.command("echo hello")
    found = making.records(tmp_path)
    kinds = [record["kind"] for record in found]
    for kind in ("session.opened", "execution.started", "execution.ended", "command.started"):
        assert kind in kinds
    [started] = [each for each in found if each["kind"] == "call.started"]
    assert started["user"] == "anna" and started["decision"]["action"] == "allow"
    assert started["arguments"]["text"] == '{"order": 12, "to": "[EMAIL]"}'
    outcomes = [each["outcome"] for each in found if each["kind"] == "call.ended"]
    assert outcomes == ["ok", "denied"]
    [denied] = [each for each in found if each.get("outcome") == "denied"]
    assert denied["decision"]["rule"] == 1 and denied["arguments"]["text"].startswith("{")
    usage = next(each for each in found if each["kind"] == "execution.ended")["usage"]
    assert usage["wall_ms"] > 0
    assert started["session"].startswith("anna/") and "('" not in started["session"]
    text = "".join(path.read_text() for path in making.files(tmp_path))
    assert "bob@example.org" not in text
    assert kinds[-1] == "log.closed"


async def test_a_question_to_a_person_and_the_answer_are_recorded(tmp_path: Path) -> None:
    answers = iter(["yes", "no"])

    async def answer(approval: Approval) -> str:
        assert approval.tool == "host.refund"
        return next(answers)

    policy = {"rules": [{"tools": "host.refund", "action": "ask"}]}
    bell = _bell(tmp_path, policy=policy, on_approval=answer)
    async with bell, bell.session(user="anna") as session:
        assert (await session.run(CALL.format(order=12))).status == "ok"
        assert (await session.run(CALL.format(order=13))).status == "error"
    found = [each for each in making.records(tmp_path) if each["kind"].startswith("a")]
    assert [(each["kind"], each.get("answer")) for each in found] == [
        ("approval.asked", None), ("approval.answered", "yes"),
        ("approval.asked", None), ("approval.answered", "no"),
    ]  # fmt: skip
    assert {(each["user"], each["tool"]) for each in found} == {("anna", "host.refund")}
    assert found[0]["approval"] == found[1]["approval"] != found[2]["approval"]
    calls = [each for each in making.records(tmp_path) if each["kind"].startswith("call.")]
    assert [(each["kind"], each.get("outcome")) for each in calls] == [
        ("call.started", None), ("call.ended", "ok"), ("call.ended", "denied"),
    ]  # fmt: skip


async def test_code_that_its_review_refuses_is_recorded_as_such(tmp_path: Path) -> None:
    review = {"rules": {"process": "deny", "loop": "ask"}}

    async def no(approval: Approval) -> str:
        return "no"

    bell = _bell(tmp_path, review=review, on_approval=no)
    async with bell, bell.session(user="anna") as session:
        mine = "import os\nos.system('echo bob@example.org')"
        for code in (mine, "while True: pass"):
            result = await session.run(code)
            assert result.error is not None and result.error.type == "CodeRefused"
    found = [each for each in making.records(tmp_path) if "execution" in each["kind"]]
    assert [each["kind"] for each in found] == ["execution.refused"] * 2  # none was started
    assert "line 2 starts a process" in found[0]["reason"]
    assert "os.system" in found[0]["code"]["text"] and "[EMAIL]" in found[0]["code"]["text"]
    assert "denied by the person who was asked" in found[1]["reason"] and found[1]["user"] == "anna"
    asked = [each for each in making.records(tmp_path) if "approval" in each["kind"]]
    assert [(each["kind"], each["tool"]) for each in asked] == [
        ("approval.asked", "divingbell.run"), ("approval.answered", "divingbell.run"),
    ]  # fmt: skip
    assert asked[1]["answer"] == "no"


async def test_without_room_no_tool_is_called_and_code_runs(tmp_path: Path) -> None:
    called = list[int]()

    def count(order: int) -> int:
        """Count."""
        called.append(order)
        return order

    async with _bell(tmp_path) as bell, bell.session() as session:
        bell.tool(count)
        assert (await session.run("from servers.host import count\ncount(1)")).value == 1
        with full(tmp_path):
            result = await session.run("count(2)")
            assert result.error is not None
            assert "no call was made: the audit log can't be written" in result.error.message
            assert str(tmp_path) not in str(result.error)
            assert [call.made for call in result.calls] == [False]
            assert "already made" not in " ".join(result.notes)
            assert (await session.run("1 + 1")).value == 2
        assert (await session.run("count(3)")).value == 3
    assert called == [1, 3]


SAVE = """
code = "def doubled(n: int) -> int:\\n    'Return a number twice.'\\n    return 2 * n\\n"
r = save_skill("doubled", code, "Doubles a number.", "doubled(2)")
r["version"]
"""


async def test_without_room_no_skill_is_changed(tmp_path: Path) -> None:
    async with _bell(tmp_path, skills="on") as bell, bell.session() as session:
        assert (await session.run(SAVE)).value == 1
        with full(tmp_path):
            result = await session.run(SAVE.replace("2 * n", "n + n"))
            assert result.error is not None and "nothing was saved" in result.error.message
            for change in (bell.skills.remove, bell.skills.rollback):
                with pytest.raises(NotRecorded):
                    await change("doubled")
        assert [each.version for each in await bell.skills.versions("doubled")] == [1]
        await bell.skills.remove("doubled")
    told = [(e["kind"], e.get("change")) for e in making.records(tmp_path) if "skill." in e["kind"]]
    assert told == [
        ("skill.changing", "save"),
        ("skill.saved", None),
        ("skill.changing", "remove"),
        ("skill.removed", None),
    ]


async def test_without_room_no_skill_is_installed_and_no_key_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "catalogue").mkdir()
    place = str(tmp_path / "catalogue")
    said = Reader(tmp_path / "publisher").publish(made(), place).statement
    async with _bell(tmp_path) as bell:
        await bell.skills.add(made("another"))  # there is a log
        with full(tmp_path), pytest.raises(NotRecorded):
            await bell.skills.install(said.name, place, sha256=said.digest)
        assert [each.name for each in await bell.skills.list()] == ["another"]
        with pytest.raises(SkillRefused, match="seen for the first time"):
            await bell.skills.install(said.name, place)
        await bell.skills.install(said.name, place, sha256=said.digest)
    told = [(e["kind"], e["skill"]) for e in making.records(tmp_path) if "skill." in e["kind"]]
    assert told == [
        ("skill.changing", "another"), ("skill.saved", "another"),
        ("skill.changing", said.name), ("skill.saved", said.name),
    ]  # fmt: skip


async def test_a_required_log_without_room_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "named.key").write_text("A" * 43 + "=\n")
    table = {"key_file": str(tmp_path / "named.key")}
    async with _bell(tmp_path, "required", audit_log=table) as bell, bell.session() as session:
        assert (await session.run("x = 1\nx")).value == 1
        with full(tmp_path), pytest.raises(NotRecorded):
            await session.run("x = 2")
        with full(tmp_path), pytest.raises(NotRecorded):
            await session.command("true")
        assert (await session.run("x")).value == 1


async def test_with_privacy_tokens_are_written_that_can_be_revealed(tmp_path: Path) -> None:
    async with _bell(tmp_path, privacy="personal") as bell, bell.session(user="anna") as session:
        await session.run(CALL.format(order=12))
        [text] = [
            each["arguments"]["text"]
            for each in making.records(tmp_path)
            if each["kind"] == "call.started"
        ]
        assert "bob@" not in text and "[EMAIL_" in text
        assert "bob@example.org" in await session.reveal(text)
    assert [each["kind"] for each in making.records(tmp_path)].count("revealed") == 1


@pytest.mark.parametrize("mode", ["on", "required"])
async def test_without_room_no_value_is_revealed(mode: str, tmp_path: Path) -> None:
    (tmp_path / "named.key").write_text("A" * 43 + "=\n")
    table = {"key_file": str(tmp_path / "named.key")}
    async with (
        _bell(tmp_path, mode, privacy="personal", audit_log=table) as bell,
        bell.session(user="anna") as session,
    ):
        result = await session.run("print('write to bob@example.org')")
        assert "bob@" not in result.text and "[EMAIL_" in result.text
        assert "bob@example.org" in await session.reveal(result.text)
        # It is on the disk before the values are anybody's.
        [record] = [each for each in making.records(tmp_path) if each["kind"] == "revealed"]
        assert (record["user"], record["count"], record["by"]) == ("anna", 1, "program")
        told = list[Any]()
        bell.journal.watch(told.append)
        with full(tmp_path), pytest.raises(NotRecorded, match="the audit log can't be written"):
            await session.reveal(result.text)
        assert not [event for event in told if isinstance(event, Revealed)]
        assert "bob@example.org" in await session.reveal(result.text)
        assert len([event for event in told if isinstance(event, Revealed)]) == 1
        assert await session.reveal("nothing hidden") == "nothing hidden"
    assert [each["kind"] for each in making.records(tmp_path)].count("revealed") == 2


async def test_the_library_keeps_no_log_unless_it_is_told_to(tmp_path: Path) -> None:
    async with Divingbell(pool=0, preload=()) as bell:
        await bell.execute("1")
    assert not (tmp_path / "data" / "divingbell" / "audit").exists()
