"""The benchmark of metrics works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_what_metrics_add_is_measured_beside_log_lines_and_without_them() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "metrics.py"), "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    for words in ("added to a cell with 0 calls", "metrics off", "lines written out"):
        assert words in done.stdout
