"""The benchmark itself works: every part once, with tiny counts. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "sandbox.py"
TINY = (
    "--quick",
    "--rounds=1",
    "--stream=1",
    "--sessions=2",
    "--soak=4",
    "--crowd=3",
    "--seconds=0.5",
)
PATIENCE = 300.0


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


@pytest.fixture(scope="module")
def table() -> str:
    """What one run of all parts prints."""
    return bench()


def rows(text: str, measure: str | None = None) -> list[list[str]]:
    """The cells of every row, or of those of one measure."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in line] for line in lines[2:]]
    return [cells for cells in found if measure in (None, cells[0])]


def test_the_heading_says_machine_python_and_date(table: str) -> None:
    heading = table.splitlines()[0]
    assert "Linux" in heading and "Python" in heading and heading.startswith("20")


def test_every_row_has_a_figure_or_the_reason_why_there_is_none(table: str) -> None:
    assert all(cells[2] for cells in rows(table))


@pytest.mark.parametrize("measure", ["new session → 1+1", "new session → pandas"])
def test_all_peers_have_a_row_for_a_first_result(table: str, measure: str) -> None:
    names = [cells[1] for cells in rows(table, measure)]
    assert len(names) == len(set(names)) == 9
    assert {"divingbell, from the pool", "divingbell, on demand", "docker run"} <= set(names)


def test_warm_round_trips_are_counted_in_our_own_session(table: str) -> None:
    ours = next(cells for cells in rows(table, "warm 1+1") if cells[1] == "divingbell")
    assert ours[2].endswith("ms") and ours[6] == "20"


def test_a_command_is_measured_beside_docker_run_of_a_bare_shell(table: str) -> None:
    found = {cells[1]: cells for cells in rows(table, "a command: 1+1, to its end")}
    assert set(found) == {"divingbell exec '1+1'", "docker run of a bare shell", "python -c"}
    assert found["divingbell exec '1+1'"][2].endswith("ms")


def test_memory_is_measured_without_and_with_the_copy(table: str) -> None:
    subjects = [cells[1] for cells in rows(table, "memory of a session")]
    assert sum("pandas imported" in subject for subject in subjects) == 2
    assert sum("after a pandas result" in subject for subject in subjects) == 2
    assert sum("with the copy" in subject for subject in subjects) == 2


def test_opening_beside_many_is_measured_and_what_the_kernel_takes_meanwhile(table: str) -> None:
    opening, kdamond = rows(table, "opening beside many")
    assert opening[1] == "the last 1 of 2, on demand" and "of the first 1" in opening[3]
    assert kdamond[2].endswith(" % of one processor") or "no kdamond" in kdamond[2]


def test_a_stream_of_openings_has_a_row_for_the_first_and_for_those_after_it(table: str) -> None:
    others = {"os.fork, no walls", "ipykernel, not waited for"}
    in_a_row = {cells[1] for cells in rows(table, "1 sessions in a row → pandas")}
    ours = {"divingbell, as it starts", "divingbell, after as many within five minutes"}
    assert in_a_row == ours | others
    steady = {cells[1] for cells in rows(table, "a session every 100 ms → pandas")}
    assert steady == {"divingbell"} | others


def test_the_part_of_the_copies_in_all_work_is_measured(table: str) -> None:
    subjects = [cells[1] for cells in rows(table, "pauses")]
    assert [subject.rpartition(": ")[2] for subject in subjects] == [
        "processor time of a cell, without copies",
        "the same, with copies",
        "how long a cell takes, without copies",
        "how long a cell takes, with copies",
    ]
    assert "% of it" in rows(table, "pauses")[1][3]


def test_sessions_in_a_row_leave_nothing(table: str) -> None:
    left = [cells[2] for cells in rows(table, "soak") if cells[4].startswith("nothing")]
    assert left == ["nothing", "nothing"]


def test_sessions_at_once_are_not_mixed_up(table: str) -> None:
    assert rows(table, "crowd")[1][2] == "0, 0"


def test_one_part_can_be_run_alone_and_its_table_kept(tmp_path: Path) -> None:
    kept = tmp_path / "table.md"
    text = bench("--only", "crowd", f"--markdown={kept}")
    assert {cells[0] for cells in rows(text)} == {"crowd"}
    assert kept.read_text("utf-8").strip() == text.strip()
