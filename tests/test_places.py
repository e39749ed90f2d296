"""Where things that last are kept."""

import stat
from pathlib import Path

import pytest

from divingbell.places import data_folder, make_private


def test_the_folder_is_that_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/diver")
    assert data_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/divingbell")
    for ignored in ({}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative"}):
        assert data_folder(ignored) == Path("/home/diver/.local/share/divingbell")


def test_only_the_owner_can_look_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_private(folder)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
