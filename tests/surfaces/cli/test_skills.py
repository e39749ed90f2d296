"""`divingbell skills`: what it says, what it keeps, and what is recorded of that."""

import json
import subprocess
from pathlib import Path

import pytest
import skills_ref

from divingbell import Divingbell
from divingbell.audit import reading
from divingbell.host.login import login_name
from divingbell.journal import tokens
from divingbell.settings.config import Settings
from divingbell.skills import folder, skill_file
from divingbell.skills.record import Record, Usage
from divingbell.skills.store import Store, Stores
from divingbell.surfaces.cli import serving, skills
from tests.skills.samples import made
from tests.small_disk import AS_ROOT, filled, small_disk

from .command import Bell, runner


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    run = runner(tmp_path)

    def started(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run("skills", *arguments, XDG_DATA_HOME=str(tmp_path / "data"), **more)

    return started


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Stores(tmp_path / "data/divingbell/skills").of(login_name())


def test_a_skill_is_added_rolled_back_exported_and_removed(tmp_path: Path, bell: Bell) -> None:
    first = folder.write(made(), tmp_path)
    assert bell("add", "top-customers").stdout == (
        "top-customers: version 1 kept; its code has never run here\n"
    )
    (first / "scripts/top_customers.py").write_text("x = 2\n")
    assert "version 2 kept" in bell("add", "top-customers").stdout
    assert "version 1 offered again" in bell("rollback", "top-customers").stdout
    (tmp_path / "out").mkdir()
    written = bell("export", "top-customers", "out").stdout.strip()
    assert written == "out/top-customers"
    assert skills_ref.validate(tmp_path / written) == []
    assert folder.read(tmp_path / written) == made()
    assert bell("remove", "top-customers").stdout == "top-customers: removed, with 2 versions\n"
    done = bell("remove", "top-customers")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no skill top-customers" in done.stderr


def test_skills_of_another_agent_are_taken_over_for_one_user(tmp_path: Path, bell: Bell) -> None:
    (tmp_path / "theirs/pdf").mkdir(parents=True)
    (tmp_path / "theirs/pdf/SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads PDFs.\nmodel: large\n---\n"
    )
    done = bell("import", "theirs", "--user", "anna")
    assert (done.stdout, done.stderr) == ("pdf: version 1 taken over\n", "· 1 skill taken over\n")
    assert "No skills are kept here" in bell("list").stdout
    [found] = json.loads(bell("list", "--user", "anna", "--json").stdout)
    assert (found["name"], found["record"]["origin"]) == ("pdf", "imported")


@pytest.mark.parametrize("name", ["../../x", "/etc/x", ".", "a/b", "x" * 300, "os"])
def test_a_name_that_can_t_be_one_is_said(bell: Bell, name: str) -> None:
    done = bell("show", "--", name)
    assert done.returncode == 2 and "can't be" in done.stderr and len(done.stderr) < 400


def test_a_change_is_in_the_log_that_a_server_has(tmp_path: Path, bell: Bell) -> None:
    folder.write(made(), tmp_path)
    log = tmp_path / "data" / "divingbell" / "audit"
    assert bell("add", "top-customers").returncode == 0
    assert not log.exists()  # there is no server, and nobody has asked for a log
    log.mkdir(mode=0o700)
    assert bell("remove", "top-customers", DIVINGBELL_AUDIT="off").returncode == 0
    assert not [*log.iterdir()]
    assert bell("add", "top-customers").returncode == 0
    assert bell("remove", "top-customers").returncode == 0
    kinds = [record["kind"] for record in reading.records(log) if "skill" in record["kind"]]
    assert kinds == ["skill.changing", "skill.saved", "skill.changing", "skill.removed"]


def test_every_change_is_in_the_audit_log_before_it_is_made_and_after(
    tmp_path: Path, bell: Bell
) -> None:
    first = folder.write(made(), tmp_path)
    named = ("--user", "anna")
    assert bell("add", "top-customers", *named, DIVINGBELL_AUDIT="on").returncode == 0
    (first / "scripts/top_customers.py").write_text("x = 2\n")
    assert bell("import", "top-customers", *named, DIVINGBELL_AUDIT="on").returncode == 0
    assert bell("rollback", "top_customers", *named, DIVINGBELL_AUDIT="on").returncode == 0
    assert bell("remove", "top-customers", *named, DIVINGBELL_AUDIT="on").returncode == 0
    more = {"XDG_DATA_HOME": str(tmp_path / "data"), "DIVINGBELL_AUDIT": "on"}
    lines = runner(tmp_path)("audit", "search", "--kind", "skill", "--json", **more).stdout
    found = [json.loads(line) for line in lines.splitlines()]
    assert {(each["user"], each["client"], each["skill"]) for each in found} == {
        ("anna", "command", "top-customers")
    }
    about = [each.get("change") or each.get("origin") or each["versions"] for each in found]
    assert [(each["kind"], said) for each, said in zip(found, about, strict=True)] == [
        ("skill.changing", "save"), ("skill.saved", "added"),
        ("skill.changing", "save"), ("skill.saved", "imported"),
        ("skill.changing", "rollback"), ("skill.saved", "rollback"),
        ("skill.changing", "remove"), ("skill.removed", 2),
    ]  # fmt: skip
    assert found[1]["digest"] == made().digest


def test_a_change_that_then_fails_is_in_the_log_all_the_same(tmp_path: Path, bell: Bell) -> None:
    assert bell("remove", "top-customers", DIVINGBELL_AUDIT="on").returncode == 2
    kinds = [each["kind"] for each in reading.records(tmp_path / "data/divingbell/audit")]
    assert kinds == ["log.begun", "skill.changing", "log.closed"]


@AS_ROOT
def test_nothing_is_changed_while_the_disk_of_the_log_is_full(
    tmp_path: Path, bell: Bell, store: Store
) -> None:
    first = folder.write(made(), tmp_path)
    store.save(made(), Record("added"))
    (first / "scripts/top_customers.py").write_text("x = 2\n")
    store.save(folder.read(first), Record("added"))
    (first / "scripts/top_customers.py").write_text("x = 3\n")
    before = [(each.version, each.digest) for each in store.summaries()]
    with small_disk(tmp_path / "data/divingbell/audit", 64 << 10) as disk, filled(disk):
        changes = (("add", "top-customers"), ("import", "top-customers"),
                   ("rollback", "top-customers"), ("remove", "top-customers"))  # fmt: skip
        for words in changes:
            done = bell(*words)
            assert (done.returncode, done.stdout) == (3, "") and "No space left" in done.stderr
    assert [(each.version, each.digest) for each in store.summaries()] == before


def test_nothing_is_changed_where_the_log_can_t_be_opened(tmp_path: Path, bell: Bell) -> None:
    (tmp_path / "log").write_text("no folder")
    (tmp_path / "divingbell.toml").write_text('audit = "on"\n[audit_log]\nfolder = "log"\n')
    folder.write(made(), tmp_path)
    done = bell("add", "top-customers", "--config", "divingbell.toml")
    assert done.returncode == 3 and not done.stdout
    assert "No skills are kept here" in bell("list").stdout


def test_the_list_says_what_a_skill_is_worth(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save(made("unused"), Record("session", state="changed"))
    store.save(made(), Record("session"))
    store.add_usage({"top-customers": Usage(1_200, 300, 45_000)})
    assert skills.show_all(login_name(), as_json=False) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "skill version uses went well tokens saved description",
        "top-customers 1 1,200 75% 45,000 Runs top-customers. Use it in tests.",
        "unused 1 0 – 0 [changed] Runs unused. Use it in tests.",
    ]


SAVED = 'def doubled(number):\n    "Return it twice as large."\n    return 2 * number\n'


async def test_the_list_says_what_sessions_have_saved_by_a_skill(store: Store, bell: Bell) -> None:
    async with Divingbell(pool=0, preload=(), skills="on") as house:
        for code in (
            f"save_skill('doubled', {SAVED!r}, 'Doubles', 'doubled(1)')",
            "from skills import doubled\n[doubled(1) for _ in range(9)]",
            "from skills import doubled\ndoubled(2)",
            "from skills import doubled\ndoubled(None)",
            "2 + 2",
        ):
            async with house.session(user=login_name()) as session:
                result = await session.run(code)
                assert (result.status == "ok") is ("None" not in code), result.error
    shown = " ".join(bell("list").stdout.splitlines()[1].split())
    # What the code cost whoever wrote it, for each use that went well.
    saved = 2 * tokens.count(store.get("doubled").skill.code or "")
    assert saved > 20 and shown == f"doubled 1 3 67% {saved} Doubles"
    [found] = json.loads(bell("list", "--json").stdout)
    assert found["usage"] == {
        "uses": 3, "failures": 1, "tokens_saved": saved, "success_rate": 0.6667,
    }  # fmt: skip


def test_a_list_in_a_pipe_has_whole_descriptions(store: Store, bell: Bell) -> None:
    long = "Finds customers. " + "Use it for this and that. " * 30
    store.save(skill_file.make("pdf-forms", long), Record("added"))
    assert long.strip() in bell("list").stdout


def test_skills_are_searched(store: Store, bell: Bell) -> None:
    store.save(made(), Record("added"))
    store.save(skill_file.make("pdf-forms", "Fills forms in."), Record("added"))
    assert [line.split()[0] for line in bell("search", "fills", "forms").stdout.splitlines()] == [
        "skill",
        "pdf-forms",
    ]
    assert json.loads(bell("search", "forms", "--json").stdout)[0]["name"] == "pdf-forms"
    assert "No skill fits 'zebra'" in bell("search", "zebra").stdout


def test_one_that_is_not_offered_is_not_said_to_be(store: Store, bell: Bell) -> None:
    store.save(made(), Record("added", state="changed", reason="shop.x changed"))
    store.save(made(code="x = 2\n"), Record("added"))
    words = "not offered until `divingbell skills test top-customers` goes well"
    assert words in bell("rollback", "top-customers").stdout
    assert f"version 1 of 2 ({words})" in bell("show", "top-customers").stdout
    assert (
        "version 2 of 2 (not the current one)"
        in bell("show", "top-customers", "--version", "2").stdout
    )


def test_what_is_there_is_not_said_to_be_taken_over(tmp_path: Path, bell: Bell) -> None:
    (tmp_path / "theirs").mkdir()
    folder.write(made(), tmp_path / "theirs")
    assert "version 1 taken over" in bell("import", "theirs").stdout
    again = bell("import", "theirs")
    assert "version 1 is there already" in again.stdout and "0 skills taken over" in again.stderr
    assert "version 1 is there already" in bell("add", "theirs/top-customers").stdout


def test_a_folder_of_skills_is_not_added_and_the_way_is_said(tmp_path: Path, bell: Bell) -> None:
    (tmp_path / "theirs").mkdir()
    folder.write(made(), tmp_path / "theirs")
    assert "`divingbell skills import theirs`" in bell("add", "theirs").stderr


def test_what_is_no_skill_is_left_out_if_that_is_wanted(tmp_path: Path, bell: Bell) -> None:
    (tmp_path / "theirs/broken").mkdir(parents=True)
    (tmp_path / "theirs/broken/SKILL.md").write_text("no head\n")
    folder.write(made(), tmp_path / "theirs")
    done = bell("import", "theirs")
    assert done.returncode == 2 and "broken: SKILL.md has no head" in done.stderr
    assert "--skip-bad" in done.stderr
    done = bell("import", "theirs", "--skip-bad")
    assert done.returncode == 0 and "top-customers: version 1 taken over" in done.stdout
    assert "left out: broken: SKILL.md has no head" in done.stderr


def test_a_command_that_is_none_is_told_all_that_are(bell: Bell) -> None:
    said = bell("nope").stderr
    assert all(name in said for name in ("list", "search", "publish", "install", "update"))


def test_what_a_person_would_not_see_is_shown(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = "x = 1  # \x1b[2J\u202e\u200bhidden\n"
    store.save(made(code=hidden), Record("session", "s-1", tools={"shop.orders": "abc"}))
    skills.show("top-customers", None, login_name(), as_json=False)
    shown = capsys.readouterr().out
    assert not {"\x1b", "\u202e", "\u200b"} & set(shown)
    assert "hidden" in shown and "shop.orders" in shown and "# top-customers" in shown
    skills.show("top-customers", 1, login_name(), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["versions"], told["digest"]) == ([1], made(code=hidden).digest)


def test_a_server_offers_skills_unless_it_is_told_not_to() -> None:
    assert Settings().skills is None
    assert serving.for_a_model(Settings()).skills == "on"
    assert serving.for_a_model(Settings(skills="off")).skills == "off"
