"""Where things that last are kept."""

from pathlib import Path

import pytest

from divingbell.host.places import data_folder


def test_the_folder_is_that_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/diver")
    assert data_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/divingbell")
    assert data_folder({"HOME": "/home/bo"}) == Path("/home/bo/.local/share/divingbell")
    for ignored in ({}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative"}):
        assert data_folder(ignored) == Path("/home/diver/.local/share/divingbell")
