"""The benchmark itself works: each part once, with tiny counts. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "sandbox.py"
TINY = ("--quick", "--rounds=1", "--sessions=2", "--soak=4", "--crowd=3", "--seconds=0.5")
PATIENCE = 180.0


def bench(*arguments: str) -> str:
    """Run the benchmark; return what it prints."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *TINY, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str, measure: str) -> list[list[str]]:
    """The cells of every row of one measure."""
    lines = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("|"))
    return [cells for line in lines if (cells := [cell.strip() for cell in line])[0] == measure]


@pytest.mark.parametrize(
    ("part", "measure", "count"),
    [
        ("first", "new session → 1+1", 9),
        ("pandas", "new session → pandas", 9),
        ("memory", "memory of a session", 4),
        ("soak", "soak", 3),
        ("crowd", "crowd", 2),
    ],
)
def test_each_part_gives_its_rows(part: str, measure: str, count: int) -> None:
    found = rows(bench("--only", part), measure)
    assert len(found) == count
    assert all(cells[2] for cells in found), "a row has neither a figure nor a reason"


def test_warm_round_trips_are_measured_in_our_own_session() -> None:
    found = {cells[1]: cells for cells in rows(bench("--only", "warm"), "warm 1+1")}
    assert found["divingbell"][2].endswith("ms")
    assert found["divingbell"][6] == "20"


def test_sessions_leave_nothing_and_are_not_mixed_up() -> None:
    text = bench("--only", "soak", "--only", "crowd")
    left = [cells[2] for cells in rows(text, "soak") if cells[4].startswith("nothing")]
    assert left == ["nothing", "nothing"]
    assert rows(text, "crowd")[1][2] == "0, 0"


def test_the_table_says_machine_and_date_and_can_be_kept(tmp_path: Path) -> None:
    kept = tmp_path / "table.md"
    text = bench("--only", "crowd", f"--markdown={kept}")
    assert "Linux" in text.splitlines()[0] and "Python" in text.splitlines()[0]
    assert kept.read_text("utf-8").strip() == text.strip()
