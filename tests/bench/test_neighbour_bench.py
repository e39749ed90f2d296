"""The benchmark of neighbours itself works. Times are never judged here."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
FLOODS = ("tiny frames", "searches in a row", "ten sessions opened a second")


def test_a_neighbour_is_measured_beside_one_that_spins_and_each_flood(tmp_path: Path) -> None:
    kept = tmp_path / "figures.json"
    only = [f"--only={name}" for name in FLOODS]
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "bench/neighbour.py",
            "--seconds=0.3",
            *only,
            f"--json={kept}",
            "--rounds=1",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(kept.read_text("utf-8"))
    assert list(figures) == ["idle", "spinning", *FLOODS]
    for name, figure in figures.items():
        assert len(figure["rounds"]) == 1 and figure["rounds"][0] and figure["longest"] > 0
        assert f"| {name} " in done.stdout
    assert "met: " in done.stdout
