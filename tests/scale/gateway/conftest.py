"""For the tests of the shared gateway: a home of their own, so that no list of tools is known."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path / "home"))
