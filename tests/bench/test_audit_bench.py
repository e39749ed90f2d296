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
    measured = {row[1] for row in rows if len(row) > 5}
    assert {"a call", "100 calls at once"} <= measured
    for measure in ("calls that left unrecorded", "logs that were taken for forged"):
        of_both = [row for row in rows if len(row) > 5 and row[1] == measure]
        assert [row[3] for row in of_both] == ["0", "0"]
        assert ["Divingbell" in row[2] for row in of_both] == [False, True]
        assert all(" 0 calls" not in row[2] for row in of_both)
