"""The benchmark of functions itself works, with tiny counts. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_functions_are_measured_beside_a_tool_of_a_server() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "library_functions.py", "--rounds=1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for way in ("MCP tool over stdio", "host function", "async host function"):
        assert f"| a call from code | {way} " in done.stdout
