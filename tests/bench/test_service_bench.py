"""The benchmarks of a service work. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def rows_of(name: str) -> dict[tuple[str, str], list[str]]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / name), "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    return {(row[1], row[2]): row for row in rows if len(row) > 5}


def test_ways_in_are_compared_and_a_file_goes_up_and_down() -> None:
    found = rows_of("service.py")
    assert {name for measure, name in found if measure == "a warm 1+1"} == {
        "the library",
        "the HTTP API",
        "execute_python over MCP",
    }
    assert any(measure == "files" for measure, _ in found)


def test_many_users_get_right_answers_and_no_run_is_without_an_end_when_things_fail() -> None:
    found = rows_of("load.py")
    usual = [row for (measure, _), row in found.items() if "for 4 s" in measure]
    errors = [row[4] for row in usual if row[4].endswith(" errors")]
    assert errors
    assert set(errors) == {"0 errors"}, usual
    with_faults = {name: row for (measure, name), row in found.items() if "faults" in measure}
    assert with_faults["runs without one end on record"][3] == "0"
    assert with_faults["runs of which client and log say another thing"][3] == "0", with_faults
    assert with_faults["without an answer"][3] == "0", with_faults
