"""`divingbell audit`, run as users run it."""

import asyncio
import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from divingbell.audit.chain import line_of, record_in
from divingbell.journal.events import SessionOpened, SkillSaved
from divingbell.principal import Principal
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import serving
from tests.audit import making, test_ocsf

from .command import COMMAND, PATIENCE, Bell, environment, runner

MAIL = "bob@example.org"


async def _fill(home: Path) -> None:
    """Write a log of two calls, and of a session of somebody with a personal name."""
    async with making.writing(home) as log:
        for call in (1, 2):
            await log.intend(making.sent(call, order=call))
        log.note(making.ended(1))
        log.note(making.ended(2, "failed"))
        log.note(SessionOpened(Principal(MAIL, "c", "http"), "s", "other"))


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    home = tmp_path / "divingbell"
    asyncio.run(_fill(home))
    (tmp_path / "divingbell.toml").write_text(
        f'[audit_log]\nfolder = "{home}/log"\nheads = "{home}/heads"\n'
    )
    made = runner(tmp_path)

    def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        config = ("--config", str(tmp_path / "divingbell.toml"))
        return made("audit", *arguments, *config, XDG_DATA_HOME=str(tmp_path), **more)

    return run


def test_tail_shows_the_newest(bell: Bell) -> None:
    done = bell("tail", "--lines", "3")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and "log.closed" in lines[-1]
    assert bell("tail", "-n", "0").returncode == 2


def test_what_a_command_has_done_names_no_cell(bell: Bell, tmp_path: Path) -> None:
    async def save() -> None:
        async with making.writing(tmp_path / "divingbell") as log:
            log.note(SkillSaved(making.ANNA, "top-customers", 2, "sha256:0", "folder", "", 0))
            log.note(SkillSaved(making.ANNA, "other", 2, "sha256:0", "session", "key", 3))

    asyncio.run(save())
    command, code = (line for line in bell("tail").stdout.splitlines() if "skill.saved" in line)
    assert command.endswith(f"  skill.saved  {making.ANNA.user}  top-customers")
    assert code.endswith(f"  skill.saved  {making.ANNA.user}  key 3  other")


def test_search_finds_by_all_that_is_given(bell: Bell) -> None:
    def found(*arguments: str) -> list[dict[str, object]]:
        done = bell("search", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [each["call"] for each in found("--kind", "call", "--outcome", "failed")] == [2]
    assert len(found("--tool", "shop")) == len(found("--user", "anna")) == 4
    assert found("--tool", "sho") == found("--since", "2099-01-01") == []
    assert len(found("--text", "ORDER")) == 2
    [opened] = found("--user", MAIL)
    assert opened["kind"] == "session.opened" and MAIL not in str(opened)
    done = bell("search", "--since", "yesterday")
    assert done.returncode == 2 and "is no time" in done.stderr


def test_verify_says_what_is_there_and_fails_for_what_is_not(bell: Bell, tmp_path: Path) -> None:
    done = bell("verify")
    assert done.returncode == 0 and "whole" in done.stdout
    [path] = making.files(tmp_path / "divingbell")
    making.rewrite(path, lambda lines: lines[:-2])
    done = bell("verify")
    assert done.returncode == 1 and "cut" in done.stdout
    shown = json.loads(bell("verify", "--json").stdout)
    assert [each["verdict"] for each in shown["chains"]] == ["cut"]


def test_who_has_only_the_public_key_can_verify(bell: Bell, tmp_path: Path) -> None:
    key = json.loads(bell("head", "--json").stdout)["key"]
    (tmp_path / "divingbell" / "audit.key").unlink()
    (tmp_path / "divingbell" / "audit.key").symlink_to("nowhere")
    assert bell("verify").returncode == 2
    assert bell("verify", "--key", key).returncode == 0
    assert bell("verify", "--key", "short").returncode == 2


def test_what_is_not_there_is_told(bell: Bell, tmp_path: Path) -> None:
    for arguments, words in (
        (("search", "--kind", "cal"), "'cal' is no kind: did you mean call?"),
        (("export", "--outcome", "dennied"), "'dennied' is no outcome: did you mean denied?"),
        (("search", "--user", "nobody"), "nothing was found"),
    ):
        done = bell(*arguments)
        assert (done.returncode, done.stdout) == (0, "") and words in done.stderr
    (tmp_path / "divingbell" / "audit.key").unlink()
    done = bell("verify")
    assert done.returncode == 2 and "verify --key PUBLIC" in done.stderr
    assert "python3 -c" not in done.stderr
    shutil.rmtree(tmp_path / "divingbell")
    for command, status in (("verify", 2), ("tail", 0), ("search", 0)):
        done = bell(command)
        assert done.returncode == status and "there is no audit log in" in done.stderr


def test_a_terminal_that_reads_json_is_told_to_do_nothing(bell: Bell, tmp_path: Path) -> None:
    [path] = making.files(tmp_path / "divingbell")
    lines = path.read_bytes().splitlines(keepends=True)
    _, end = record_in(lines[-1], None)
    said = {"at": "2026-01-01", "kind": "call.started", "tool": "ä\x9b31m\u202e\U000e0041"}
    path.write_bytes(b"".join([*lines, line_of(said, end)[0]]))
    shown = bell("search", "--json", "--text", "31m").stdout
    assert json.loads(shown)["tool"] == said["tool"] and "ä" in shown
    assert shown.rstrip("\n").isprintable()


def test_a_line_that_somebody_else_has_written_hides_none_of_the_others(
    bell: Bell, tmp_path: Path
) -> None:
    [path] = making.files(tmp_path / "divingbell")
    lines = path.read_bytes().splitlines(keepends=True)
    _, end = record_in(lines[-1], None)
    for said in (
        {"at": [], "kind": [], "chain": []},
        {"at": "0001-01-01", "kind": "call.x"},
        {"a": 1},
    ):
        line, end = line_of(said, end)
        lines.append(line)
    lines.append(line_of({"at": "2026-01-01", "kind": "call.started", "tool": "last"}, end)[0])
    path.write_bytes(b"".join(lines))
    for words in (
        ("tail", "--json"), ("tail",), ("search", "--tool", "last"),
        ("export",), ("export", "--format", "ocsf"),
    ):  # fmt: skip
        done = bell(*words)
        assert done.returncode == 0 and "last" in done.stdout, (words, done.stderr)
    done = bell("verify")  # which tells of them
    assert done.returncode == 1 and "changed" in done.stdout, done.stderr


def test_export_gives_lines_of_json(bell: Bell) -> None:
    plain = [json.loads(line) for line in bell("export").stdout.splitlines()]
    events = [json.loads(line) for line in bell("export", "--format=ocsf").stdout.splitlines()]
    assert len(plain) == len(events) == 7
    assert [each["unmapped"] for each in events] == plain
    assert all("hash" in each for each in plain)


def test_security_tools_can_read_what_is_exported_for_them(
    bell: Bell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(test_ocsf.write_every_kind(tmp_path / "divingbell", monkeypatch))
    done = bell("export", "--format", "ocsf")
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    for event in events:
        test_ocsf.check(event)
    assert {event["unmapped"]["kind"] for event in events} == test_ocsf.EVERY_KIND
    assert "count" in str(events)


async def test_tail_shows_what_comes_while_it_looks_on(bell: Bell, tmp_path: Path) -> None:
    home = tmp_path / "divingbell"
    following = await asyncio.create_subprocess_exec(
        COMMAND, "audit", "tail", "--follow", "--json", "--lines", "1",
        "--config", tmp_path / "divingbell.toml",
        env=environment(XDG_DATA_HOME=str(tmp_path)), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert following.stdout is not None
    shown = following.stdout

    async def next_record() -> dict[str, object]:
        async with asyncio.timeout(PATIENCE):
            found: dict[str, object] = json.loads(await shown.readline())
        return found

    try:
        last = await next_record()
        assert last["kind"] == "log.closed"
        async with making.writing(home) as log:  # another process would be no different
            for call in (7, 8):
                await log.intend(making.sent(call, order=call))
                if call == 7:
                    begun = await next_record()
                    assert begun["kind"] == "log.begun" and begun["chain"] != last["chain"]
                record = await next_record()
                assert (record["kind"], record["call"]) == ("call.started", call)
        assert (await next_record())["kind"] == "log.closed"
        following.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            assert await following.wait() == 130
        assert await shown.read() == b""  # nothing is shown twice
    finally:
        if following.returncode is None:
            following.kill()
            await following.wait()


def test_a_server_keeps_a_log_unless_it_is_told_not_to() -> None:
    assert serving.for_a_model(Settings()).audit == "on"
    assert serving.for_a_model(Settings(audit="off")).audit == "off"
    assert serving.for_a_model(Settings(audit="required")).audit == "required"


def test_a_reveal_is_recorded_before_anything_is_shown(tmp_path: Path) -> None:
    run = runner(tmp_path)
    more = {"XDG_DATA_HOME": str(tmp_path / "data"), "DIVINGBELL_AUDIT": "on"}
    done = run("vault", "reveal", "--to-program", stdin="a text", **more)
    assert (done.returncode, done.stdout) == (0, "a text")
    found = run("audit", "search", "--kind", "revealed", "--json", **more).stdout
    assert json.loads(found)["by"] == "command"
    assert run("audit", "verify", **more).returncode == 0


def test_a_reveal_that_can_not_be_recorded_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no folder")
    (tmp_path / "divingbell.toml").write_text('audit = "on"\n[audit_log]\nfolder = "log"\n')
    config = ("--config", str(tmp_path / "divingbell.toml"))
    done = runner(tmp_path)(
        "vault", "reveal", "--to-program", *config,
        stdin="a text", XDG_DATA_HOME=str(tmp_path / "data"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "the audit log can't be written" in done.stderr
