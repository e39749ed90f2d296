"""Each check of the surroundings notices when what keeps its promise is taken away."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell, app
from divingbell.gateway.upstream.transport import stdio
from divingbell.host import kernel, requirements
from divingbell.session import keeper
from divingbell.settings import disclosure, sources, trust
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


async def test_settings_that_anyone_may_use_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> sources.Source | None:
        if not path.exists():
            return None
        return sources.Source(path, b"" if not path.is_file() else path.read_bytes())

    monkeypatch.setattr(trust.Trust, "standing", lambda *_: "trusted")
    monkeypatch.setattr(sources, "lying_at", read)
    monkeypatch.setattr(disclosure, "shown", lambda words: words)
    rows = {"G01", "G02", "G03", "G04"}
    assert await broken(own_bell, rows) == rows


async def test_a_library_that_looks_around_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = app.load

    def looking(path: object, overrides: object) -> object:
        return load(None, overrides, os.environ, sources.of_user(os.environ))  # type: ignore[arg-type]

    monkeypatch.setattr(app, "load", looking)
    assert await broken(own_bell, {"G05"}) == {"G05"}


async def test_programs_that_start_where_they_are_called_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "NO_FOLDER", None)
    monkeypatch.setattr(kernel, "_NOT_FROM_HERE", ())
    assert await broken(own_bell, {"G06", "G09"}) == {"G06", "G09"}


async def test_users_and_packages_of_any_kind_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "check_name", lambda *_: None)
    monkeypatch.setattr(requirements, "_is_requirement", lambda _: True)
    assert await broken(own_bell, {"G07", "G08"}) == {"G07", "G08"}
