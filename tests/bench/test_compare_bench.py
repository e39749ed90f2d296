"""The comparison of two checkouts works, with this one on both sides. Times are never judged."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "compare.py"
PATIENCE = 300.0


def test_two_checkouts_are_measured_in_turn() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--with", str(ROOT), "--quick"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:4] for line in done.stdout.splitlines() if "µs" in line]
    assert [(measure.strip(), of.strip()) for measure, of, _ in rows] == [
        ("warm 1+1", "before"),
        ("warm 1+1", "now"),
        ("tool call", "before"),
        ("tool call", "now"),
    ]


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--with", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 2 and "name another checkout" in done.stderr
