"""The benchmark of skills works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_imports_and_searches_are_measured() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "skills.py"), "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    found = {row[2] for row in rows if len(row) > 5}
    assert {"a skill", "the same from /workspace", "by words", "recording"} <= found
