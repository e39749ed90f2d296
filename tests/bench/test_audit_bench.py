"""The benchmark of the audit log works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_calls_are_compared_and_no_kill_loses_a_record() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "audit.py"), "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    found = {row[1]: row for row in rows if len(row) > 5}
    assert {"a call", "100 calls at once"} <= found.keys()
    assert found["calls that left unrecorded"][3] == "0"
    assert found["logs that were taken for forged"][3] == "0"
