"""The benchmark of kernels works. Times are never judged here."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
OURS, PEER = "divingbell", "jupyter-kernel-gateway, ipykernel"


def test_first_and_warm_results_are_measured_beside_the_peer() -> None:
    # In CI the peer is there; elsewhere it is left out where it is not installed.
    install = () if os.environ.get("CI") else ("--no-install",)
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "jupyter.py"), "--quick", *install],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| a ")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    if install and "not installed" in done.stdout:
        return
    measures = ("a first result", "a warm 1+1")
    assert [row[:2] for row in rows] == [[each, of] for each in measures for of in (OURS, PEER)]
    assert all(row[2].endswith("ms") for row in rows)
    assert all("× as fast" in row[3] for row in rows[::2])
