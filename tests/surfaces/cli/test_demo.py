"""`divingbell demo`: all that it shows is as promised, and its picture goes where it says."""

import subprocess
from pathlib import Path

import pytest

from divingbell.models import Output
from divingbell.surfaces.cli import demo, exit_status

from .command import COMMAND, PATIENCE, PNG, environment


def test_the_picture_of_the_demo_is_not_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / demo.PICTURE).symlink_to("precious")
    monkeypatch.chdir(tmp_path)
    assert demo._save(Output("image/png", PNG)) == tmp_path / demo.PICTURE
    assert (tmp_path / demo.PICTURE).read_bytes() == PNG
    assert (tmp_path / "precious").read_text() == "kept"


def test_the_demo_shows_that_everything_is_as_promised(tmp_path: Path) -> None:
    env = environment()
    del env["DIVINGBELL_PRELOAD"]
    done = subprocess.run(
        [COMMAND, "demo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == exit_status.OK, done.stdout + done.stderr
    assert "✗" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "2646 helmet 124000.0 Amundsen" in done.stdout
    assert "instead of" in done.stdout
    assert (tmp_path / "divingbell-demo.png").read_bytes().startswith(PNG)
