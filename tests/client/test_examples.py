"""The library's examples run through the client, as they stand."""

import asyncio
import contextlib
import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import divingbell
from divingbell import app, client
from tests.surfaces.http.serving import ANNE, Site, served
from tests.test_examples import CHECKS, EXAMPLES, SERVERS, SHOWN, config_of

PLAIN = {"quickstart.py", "files.py", "streaming.py", "plot.py"}
OF_THE_PROGRAM = {
    "host_functions.py": "functions of the program are tools",
    "skill.py": "the program saves and shares skills",
    "web_service.py": "a service of its own, with sessions of its users",
}
"""Those that no client can run elsewhere, and why; docs/api.md names them too."""


@contextlib.asynccontextmanager
async def elsewhere(**settings: Any) -> AsyncIterator[client.Divingbell]:
    """A client of a service that has the settings of the program: there is where they belong."""
    async with (
        app.Divingbell(**settings) as bell,
        served(bell) as site,
        client.Divingbell(site.url, ANNE) as service,
    ):
        yield service


@pytest.mark.parametrize("name", SERVERS)
async def test_an_example_with_servers_runs_where_a_service_has_them(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(divingbell, "Divingbell", elsewhere)
    monkeypatch.setenv("EXAMPLE_MCP_CONFIG", str(config_of(name, tmp_path)))
    monkeypatch.setenv("EXAMPLE_FOLDER", "set by the example")
    await asyncio.to_thread(runpy.run_path, str(EXAMPLES / name), run_name="__main__")
    CHECKS[name](capsys.readouterr().out)


def test_every_example_runs_elsewhere_or_says_why_not() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == PLAIN | {*SERVERS, *OF_THE_PROGRAM}
    page = (EXAMPLES.parent / "docs/api.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in OF_THE_PROGRAM)


@pytest.mark.parametrize("name", sorted(PLAIN))
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
