"""Compiled expressions that are kept: used again, and never trusted where they are not ours."""

from pathlib import Path

import pytest

from divingbell.border.privacy import compiled
from divingbell.border.privacy.engines import Gate, HyperscanEngine

GATES = (Gate("ann@[a-z]+"), Gate("[0-9]{9}", has_start=True))
TEXT = b"mail ann@example or 123456789."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))
    return tmp_path


def test_a_second_engine_is_read_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = HyperscanEngine(GATES).hits(TEXT)
    monkeypatch.setattr(HyperscanEngine, "_compiled", None)
    assert HyperscanEngine(GATES).hits(TEXT) == first != []


@pytest.mark.parametrize("harm", ["other bytes", "cut", "others may write"])
def test_a_file_that_can_not_be_used_is_made_anew(home: Path, harm: str) -> None:
    first = HyperscanEngine(GATES).hits(TEXT)
    [path] = home.rglob("*.hs")
    if harm == "others may write":
        path.chmod(0o666)
    else:
        path.write_bytes(b"\0" * 100 if harm == "other bytes" else path.read_bytes()[:50])
    assert HyperscanEngine(GATES).hits(TEXT) == first


def test_other_expressions_have_a_file_of_their_own(home: Path) -> None:
    HyperscanEngine(GATES)
    HyperscanEngine(GATES[:1])
    assert len(list(home.rglob("*.hs"))) == 2


def test_there_is_an_end_to_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MOST_KEPT", 3)
    for number in range(6):
        HyperscanEngine((Gate(f"word{number}"),))
    assert len(list(home.rglob("*.hs"))) == 3


def test_without_a_folder_to_write_to_it_is_made_each_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "expressions").write_text("no folder")
    assert HyperscanEngine(GATES).hits(TEXT)
    made = compiled.kept_or_made(repr(GATES), lambda: HyperscanEngine._compiled(GATES))
    assert made is not None
