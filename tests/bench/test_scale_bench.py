"""The benchmark of nodes itself works. Times are never judged here."""

import importlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


@pytest.fixture(scope="module")
def scale_chaos() -> Iterator[Any]:
    """Bench modules have plain names: on the path only while they are needed."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        yield importlib.import_module("scale_chaos")
    finally:
        sys.path.remove(str(ROOT / "bench"))


def test_every_part_is_measured_once() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/scale.py", "--quick", "--rounds=1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "1+1, warm",
        "a call of a tool",
        "1 MB of output",
        "16 sessions",
        "from a print to its event",
        "a streaming actor generator",
        "ray.experimental.sandbox",
        "MCP of 2025, 20 clients",
        "MCP of 2026, 20 clients",
        "an empty actor call",
        "on 2 nodes",
        "killed",
        "hangs",
    ):
        assert words in done.stdout


def test_what_is_killed_at_random_is_told_of() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/scale_chaos.py", "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for words in ("every run has one end", "on one node", "nothing is left behind"):
        assert words in done.stdout
    assert " ok" in done.stdout, done.stdout


ASKED, ANSWERED = {"kind": "asked", "run": "a"}, {"kind": "answered", "run": "a"}
LEFT: dict[str, Any] = {"kind": "left", "faults": []}
BEGAN, ENDED = ({"kind": kind, "run": "a"} for kind in ("began", "ended"))


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ([ASKED, BEGAN, ENDED, ANSWERED], None),
        ([ASKED, ANSWERED, ANSWERED], "a has 2 answers"),
        ([BEGAN, ENDED, ENDED], "the cell of a has 2 ends"),
        ([BEGAN], "the cell of a has no end"),
        ([{"kind": "asked", "run": str(run)} for run in range(9)], "got no answer for 9 runs"),
        ([{"kind": "left", "faults": ["OSError()"]}], "front-0: OSError()"),
    ],
)
def test_a_run_without_its_one_end_is_found(
    scale_chaos: Any, told: list[dict[str, Any]], wrong: str | None
) -> None:
    front = scale_chaos.Front("front-0", process=None, told=[*told, LEFT])
    found = scale_chaos.judged([front])
    assert found == [] if wrong is None else any(wrong in each for each in found)
    # Who is killed hears of nothing more.
    killed = scale_chaos.Front("front-1", process=None, told=[BEGAN], was_killed=True)
    assert scale_chaos.judged([killed]) == []


def test_a_process_that_is_left_is_found(scale_chaos: Any) -> None:
    mark = "a-mark-of-this-test"
    process = subprocess.Popen(["sleep", "60"], env={"MARK": mark})
    try:
        deadline = time.monotonic() + PATIENCE
        while not (found := scale_chaos.left_behind(mark)):  # it has just become `sleep`
            assert time.monotonic() < deadline
        assert [each.split()[0] for each in found] == [str(process.pid)]
    finally:
        process.kill()
        process.wait()
    assert not scale_chaos.left_behind(mark)
