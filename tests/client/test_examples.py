"""The library's examples run through the client, as they stand."""

import asyncio
import runpy
from pathlib import Path

import pytest

import divingbell
from divingbell import client
from tests.surfaces.http.serving import ANNE, Site
from tests.test_examples import EXAMPLES, SHOWN


@pytest.mark.parametrize("name", ["quickstart.py", "files.py", "streaming.py", "plot.py"])
async def test_an_example_runs_elsewhere(
    name: str,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(divingbell, "Divingbell", client.Divingbell)
    monkeypatch.setenv("DIVINGBELL_URL", site.url)
    monkeypatch.setenv("DIVINGBELL_TOKEN", ANNE)
    monkeypatch.setattr("sys.argv", [name, str(tmp_path / "plot.png")])
    await asyncio.to_thread(runpy.run_path, str(EXAMPLES / name), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown == SHOWN[name] or (SHOWN[name] is None and "plot.png: " in shown)
