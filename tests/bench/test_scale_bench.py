"""The benchmark of nodes itself works. Times are never judged here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0


def test_every_part_is_measured_once() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/scale.py", "--quick", "--rounds=1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "1+1, warm",
        "a call of a tool",
        "1 MB of output",
        "16 sessions",
        "an empty actor call",
        "on 2 nodes",
        "killed",
        "hangs",
    ):
        assert words in done.stdout
