"""The benchmark of the walls itself works, with tiny counts. Times are never judged here."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "walls.py"
TINY = ("--quick", "--rounds=1", "--sessions=1")
PATIENCE = 600.0
WALLS = ["local", "docker", "docker-runsc", "gvisor"]
RESTORED = "gvisor, by restore"
OTHERS = [
    "docker run",
    "docker run --runtime=runsc",
    "llm-sandbox",
    "llm-sandbox, interactive",
    "ray.experimental.sandbox",
]
KEEP_STATE = OTHERS[2:]
LABELS = "{{.ID}} {{.Labels}}"

Rows = list[dict[str, str]]


@contextmanager
def bench(folder: Path, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """The benchmark as it runs, with a folder for all that it makes for a while."""
    (folder / "tmp").mkdir()
    # In CI all of the others are there; elsewhere those that are installed will do.
    install = () if os.environ.get("CI") else ("--no-install",)
    with subprocess.Popen(
        [sys.executable, SCRIPT, *TINY, *install, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), **environment},
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def rows_of(folder: Path, *arguments: str, **environment: str) -> Rows:
    """Run it to its end; return the rows, once it is sure that nothing else is left."""
    kept = folder / "rows.json"
    with bench(folder, f"--json={kept}", *arguments, **environment) as running:
        said, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, errors
    assert left_behind(folder, running.pid) == []
    rows: Rows = json.loads(kept.read_text("utf-8"))["rows"]
    for row in rows:
        assert row["median"] and row["subject"] in said
    return rows


def left_behind(folder: Path, pid: int) -> list[str]:
    """What there still is of a run: files, containers of ours and of others."""
    found = [path.name for path in (folder / "tmp").iterdir()]
    try:
        command = ["docker", "ps", "--all", "--no-trunc", "--format", LABELS]
        listed = subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return found
    marks = (f"org.divingbell.bench={pid}", str(folder))
    return found + [line for line in listed.splitlines() if any(mark in line for mark in marks)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Without cold starts, which take most of the time; another test has those."""
    chosen = ("--only=warm", "--only=calls", "--only=memory")
    return rows_of(tmp_path_factory.mktemp("walls"), *chosen)


def subjects(rows: Rows, measure: str) -> list[str]:
    return [row["subject"] for row in rows if row["measure"] == measure]


def test_warm_results_and_calls_have_a_row_for_each_wall(rows: Rows) -> None:
    assert subjects(rows, "warm 1+1") == WALLS + KEEP_STATE
    assert subjects(rows, "a tool call") == WALLS


def test_memory_is_weighed_behind_each_wall(rows: Rows) -> None:
    found = subjects(rows, "memory, idle")
    assert len(found) == len(WALLS) + 1
    for name, subject in zip([*WALLS, RESTORED], found, strict=True):
        assert subject.startswith(name)


def test_what_is_there_is_measured_and_what_is_not_says_why(rows: Rows) -> None:
    for row in rows:
        if row["subject"].startswith("local"):
            assert row["runs"]
        assert row["runs"] or (row["median"].startswith("– (") and len(row["median"]) > 10)


def test_without_docker_its_rows_say_so_and_the_rest_is_measured(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/nobody.sock"
    found = rows_of(tmp_path, "--only=first", DOCKER_HOST=nowhere)
    assert subjects(found, "first pandas result, pool") == WALLS
    assert subjects(found, "first pandas result, cold") == [*WALLS, RESTORED, *OTHERS]
    by_subject = {row["subject"]: row for row in found if row["measure"].endswith("cold")}
    assert by_subject["local"]["runs"] == "1"
    for name in ("docker", "docker-runsc", "docker run"):
        assert "no Docker daemon" in by_subject[name]["median"]


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    with bench(tmp_path, "--only=first", "--rounds=1000") as running:
        assert running.stderr is not None
        assert "measuring first" in running.stderr.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(3)  # in the middle of it, whatever that is
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert left_behind(tmp_path, running.pid) == []
