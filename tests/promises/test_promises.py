"""Every promise, one test each; and that the checks can fail."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.models import Output, Result
from divingbell.promises import GROUPS, PREAMBLE, PROBES, PROMISES, Promise, tables
from divingbell.promises.check import (
    CHECKS,
    PRIVACY_CHECKS,
    TOOL_CHECKS,
    PrivacyRig,
    PromiseBroken,
    ToolRig,
    Watch,
    judged,
)
from divingbell.promises.check.self_check import Verdict, check, left_out, promised

ROOT = Path(__file__).parents[2]
KEPT_BY_LOCAL = [
    promise for promise in PROMISES if promise.about_sessions and promise.kept_by("local")
]
WITH_TOOLS = TOOL_CHECKS.keys() | PRIVACY_CHECKS.keys()
REQUIRED = """
F01 F02 F03 F04 F06 F07 F08 F09 F10 F11 F14 F15 F16 F19
P01 P02 P04 P05 P06 P08 P11
N01 N02 N05 N07 N08 N10 N12 N13
R01 R03 R06 R09 R10 R11 R12 R13 R14 R15 R19 R20 R22 R23 R25 R26 R27
K01 K03 K07 K10 K11 K13 K14 K15 K17 K18 K19 K20 K22 K23 K24 K25 K28 K29 K30 K31 K32 K33 K35 K36
T01 T02 T03 T04 T07 T08 T09 T12 T14
H01 H03 H04 H05 H06 H08
D01 D02 D03 D05 D07 D08
I01 I02 I05 I06
Y02 Y03 Y04 Y06
S05 S06 S07
"""
# Harmless outside, and sure to be unsafe there: they look, and open without writing.
UNSAFE_OUTSIDE = ["P02", "P04", "N40", "N42", "K11", "K29", "K45"]


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    """One of its own: some checks end its zygote."""
    async with Divingbell(pool=0) as bell:
        yield bell


@pytest.fixture(scope="module")
async def with_tools(own_bell: Divingbell) -> dict[str, Verdict]:
    """All checks that need tools, in one go: the Divingbells that they share start but once."""
    return {verdict.promise.id: verdict async for verdict in check(own_bell, WITH_TOOLS)}


def _among(with_tools: bool) -> list[Promise]:
    return [promise for promise in KEPT_BY_LOCAL if (promise.id in WITH_TOOLS) is with_tools]


@pytest.mark.parametrize("promise", _among(False), ids=lambda promise: promise.id)
async def test_the_promise_is_kept(promise: Promise, own_bell: Divingbell) -> None:
    verdicts = [verdict async for verdict in check(own_bell, {promise.id})]
    if not verdicts:
        pytest.skip(f"not promised here: {promise.without_cgroups or promise.without_own_uid}")
    [verdict] = verdicts
    assert verdict.kept, f"{promise.id} ({promise.attack}): {verdict.detail}"


@pytest.mark.parametrize("promise", _among(True), ids=lambda promise: promise.id)
async def test_the_promise_about_tools_is_kept(
    promise: Promise, with_tools: dict[str, Verdict]
) -> None:
    verdict = with_tools[promise.id]
    assert verdict.kept, f"{promise.id} ({promise.attack}): {verdict.detail}"


# The table


def test_every_attack_of_the_required_groups_has_a_row() -> None:
    known = {promise.id for promise in PROMISES}
    assert known.issuperset(REQUIRED.split())
    assert len(known) == len(PROMISES)


def test_every_row_is_complete() -> None:
    for promise in PROMISES:
        assert promise.group in GROUPS
        assert promise.attack and promise.expected and "\n" not in promise.attack
        if promise.probe:
            assert promise.source()
        if promise.kind == "host" and promise.kept_by("local"):
            assert promise.id in CHECKS.keys() ^ TOOL_CHECKS.keys() ^ PRIVACY_CHECKS.keys()
        if promise.kind == "bomb":
            assert promise.outcomes and promise.within
        assert bool(promise.ways) is (promise.kind == "browser")


def test_every_probe_is_of_use() -> None:
    used = {promise.probe for promise in PROMISES} | {PREAMBLE.name}
    checks = (ROOT / "src/divingbell/promises/check").glob("*.py")
    driven = "".join(path.read_text("utf-8") for path in checks)
    for path in PROBES.glob("*.py"):
        assert path.name in used or path.name in driven, path.name


def test_every_check_belongs_to_a_row() -> None:
    assert CHECKS.keys() | WITH_TOOLS <= {
        promise.id for promise in PROMISES if promise.kind == "host"
    }


def test_rows_that_need_control_groups_are_left_out_without_them() -> None:
    with_them = promised("local", "cgroup v1")
    without = promised("local", "rlimits")
    assert {promise.id for promise in with_them} - {promise.id for promise in without} == {"R09"}


def test_rows_that_need_a_uid_are_left_out_where_sessions_have_the_uid_of_their_user() -> None:
    left = {promise.id: reason for promise, reason in left_out("local", "cgroup v2", own_uid=False)}
    assert {"R62", "R63"} <= left.keys() and "together" in left["R62"]
    assert {"R62", "R63"} <= {promise.id for promise in promised("gvisor", "cgroup", own_uid=False)}


@pytest.mark.parametrize("name", tables.PAGES)
def test_the_table_of_a_page_is_current(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert tables.renewed(text, tables.PAGES[name]()) == text, (
        "run python -m divingbell.promises.tables --write"
    )


def test_a_stale_page_is_noticed_and_renewed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in tables.PAGES:
        (tmp_path / name).write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    assert tables.main(["--check", str(tmp_path)]) == 1
    assert tables.main(["--write", str(tmp_path)]) == 0
    assert tables.main(["--check", str(tmp_path)]) == 0
    page = (tmp_path / "SECURITY.md").read_text("utf-8")
    assert page.startswith("before\n") and page.endswith("after\n") and "F01" in page


def test_identifiers_named_in_the_security_page_exist() -> None:
    known = {promise.id for promise in PROMISES}
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    prose = text.partition(tables.BEGIN)[0] + text.partition(tables.END)[2]
    letters = "".join({each[0] for each in known})
    assert set(re.findall(rf"\b[{letters}]\d{{2}}\b", prose)) <= known


# The checks can fail


@pytest.mark.parametrize("name", UNSAFE_OUTSIDE)
def test_a_probe_says_unsafe_where_there_is_no_sandbox(name: str) -> None:
    answer = subprocess.run(
        [sys.executable, f"{name}.py"],
        cwd=PROBES,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search("^UNSAFE", answer.stdout, re.MULTILINE), answer.stdout + answer.stderr


def _printed(text: str) -> Result:
    return Result("ok", outputs=(Output("text/plain", text, "stdout"),))


def test_no_verdict_is_no_pass() -> None:
    with pytest.raises(PromiseBroken, match="no verdict"):
        judged(_printed("all is well\n"))
    with pytest.raises(PromiseBroken, match="no verdict"):
        judged(Result("killed", outputs=_printed("SAFE\n").outputs))


def test_one_unsafe_outweighs_every_safe() -> None:
    assert judged(_printed("SAFE one\nSAFE two\n")) == "one; two"
    with pytest.raises(PromiseBroken, match="two"):
        judged(_printed("SAFE one\nUNSAFE two\nSAFE three\n"))


async def test_a_bomb_that_does_not_go_off_as_said_is_broken(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from divingbell.promises.check import self_check

    row = next(promise for promise in PROMISES if promise.id == "R23")
    monkeypatch.setattr(self_check, "PROMISES", (replace(row, outcomes=("ok",)),))
    [verdict] = [verdict async for verdict in check(own_bell)]
    assert not verdict.kept and "killed" in verdict.detail


@pytest.mark.parametrize("ends", [True, False])
async def test_a_check_that_does_not_end_beside_others_is_tried_once_more(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    from divingbell.promises.check import self_check

    tries = 0

    async def slow(rig: object) -> str:
        nonlocal tries
        tries += 1
        if tries == 1 or not ends:
            await asyncio.Event().wait()
        return "at last"

    monkeypatch.setattr(self_check, "PATIENCE", 0.1)
    monkeypatch.setitem(CHECKS, "F04", slow)
    [verdict] = [verdict async for verdict in check(own_bell, {"F04"})]
    assert (verdict.kept, tries) == (ends, 2)
    assert verdict.detail == ("at last" if ends else "the check did not end within 0.1 s")


async def test_a_door_that_stands_open_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without rules, without redaction, and with text as it comes, each of these rows is broken."""
    from divingbell.gateway.catalog import catalog
    from divingbell.gateway.policy.approvals import Answer, Approvals
    from divingbell.gateway.upstream import redaction
    from divingbell.settings.policy import Decision, Policy

    async def yes(*_: object) -> Answer:
        return Answer("yes")

    monkeypatch.setattr(Policy, "decide", lambda *_: Decision("allow"))
    monkeypatch.setattr(Policy, "bind", lambda _, __, arguments, *___: dict(arguments))
    monkeypatch.setattr(Approvals, "ask", yes)
    monkeypatch.setattr(redaction.Redactor, "clean", lambda self, text: text)
    monkeypatch.setattr(redaction.Redactor, "clean_value", lambda self, value: value)
    monkeypatch.setattr(catalog.text, "visible", lambda words, _: words)
    rows = {"T02", "T04", "T14", "T40", "N12", "D02", "D03"}
    verdicts = [verdict async for verdict in check(own_bell, rows)]
    assert {verdict.promise.id for verdict in verdicts if not verdict.kept} == rows


@pytest.mark.parametrize("kind", [ToolRig, PrivacyRig])
async def test_a_rig_with_tools_leaves_nothing_behind(
    own_bell: Divingbell, kind: type[ToolRig]
) -> None:
    from divingbell.host import places, profile

    def kept() -> set[Path]:
        folders = (places.data_folder(), profile.home() / "logs", profile.home() / "tool-lists")
        names = ("*hostile*", "vault*")
        return {path for folder in folders for name in names for path in folder.glob(name)}

    before = kept()
    async with kind.beside(own_bell) as rig:
        pid = rig.bell.gateway.fleet.upstream("hostile").pid
        assert pid is not None
        async with rig.session() as session:
            assert await rig.value(session, "servers.hostile.echo('here')") == "here"
    assert kept() == before
    assert not Path(f"/proc/{pid}").exists() and not rig.logs.exists()


async def test_the_watch_notices_memory_and_a_busy_loop() -> None:
    import time

    async with Watch() as watch:
        taken = bytearray(b"x") * (300 << 20)
        ends = time.thread_time() + 2.5
        while time.thread_time() < ends:  # to give nobody else a turn is the point
            pass
    assert watch.memory > 250 << 20 and watch.busy > 2.0
    del taken
    with pytest.raises(PromiseBroken, match="suffers"):
        watch.judge()
