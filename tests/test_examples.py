"""Each example runs as it stands, and shows what it is there to show."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE = 120.0

SHOWN = {
    "quickstart.py": "ok 42\nrows: 3\nnp.int64(42)\nerror AttributeError\ntimeout 3\n",
    "streaming.py": ("step 0\nstep 1\nstep 2\na warning\nvalue: 'all done'\nstatus: ok\n"),
    "plot.py": None,  # tells the size of the image, which depends on matplotlib
    "files.py": ("ok\nsales.csv: 33 bytes\ntotals.csv: 26 bytes\ncity,units\nLima,7\nOslo,21\n"),
}


def run(name: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    shown = run(name, tmp_path)
    assert SHOWN[name] in (None, shown)


def test_the_plot_is_a_png(tmp_path: Path) -> None:
    assert "figure.png: " in run("plot.py", tmp_path, "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWN)
