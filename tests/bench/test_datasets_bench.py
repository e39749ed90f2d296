"""The benchmark of datasets works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_a_quick_run_measures_imports_json_and_queries() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "datasets.py", "--quick", "--megabytes=2"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for words in ("import_dataset, kept", "as fast as JSON", "DuckDB alone", "≤ 1.3×"):
        assert words in done.stdout
