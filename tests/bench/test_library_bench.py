"""The benchmark of the library itself works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests import libraries

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


@pytest.fixture(scope="module")
def table() -> str:
    """What a quick run of all parts prints."""
    for name in ("numpy", "pandas", "pyarrow"):
        libraries.need(name)
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "library.py", "--quick", "--megabytes=3"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_frames_in_and_out_are_measured_beside_parquet(table: str) -> None:
    lines = [line for line in table.splitlines() if "a DataFrame of 3 MB, in and out" in line]
    assert len(lines) == 4
    assert sum("session.set and session.get" in line and "≤ 2×" in line for line in lines) == 2
    assert sum("| to_parquet" in line for line in lines) == 2


def test_calls_of_functions_are_measured_beside_a_tool_of_a_server(table: str) -> None:
    for way in ("MCP tool over stdio", "host function", "async host function"):
        assert [line for line in table.splitlines() if f"| {way} " in line]


def test_both_faces_and_the_import_are_measured(table: str) -> None:
    assert "a call of nothing into a thread's loop" in table
    assert "of 1.5× plus the hop" in table
    assert "ms more" in table


def test_a_review_is_measured_beside_compiling_the_same(table: str) -> None:
    lines = [line for line in table.splitlines() if "| a cell of 2 kB " in line]
    assert [word for line in lines for word in ("| review ", "| compile() ") if word in line] == [
        "| review ",
        "| compile() ",
    ]
