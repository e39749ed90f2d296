"""The history of a prompt: what is on the disk has no values, and comes back all the same."""

import os
from pathlib import Path

import pytest

from divingbell.border.privacy.blotter import Blotter
from divingbell.surfaces.cli.terminal import kept_history
from divingbell.surfaces.cli.terminal.kept_history import KeptHistory
from divingbell.surfaces.cli.terminal.prompt import history_file, history_of

TYPED = (
    "write to anna@example.org about card 4111 1111 1111 1111",
    "key = 'ghp_" + "x7Kq2LmN9pRs4TvW8yZb3CdF6gHj1kM5nPqR'",
    "save(last_name='Sayrefitz')\nprint('Sayrefitz')",
    "!grep --last-name Sayrefitz people.csv",
)


def test_what_is_typed_is_kept_without_values(tmp_path: Path) -> None:
    path = history_file({"XDG_STATE_HOME": str(tmp_path)})
    assert path is not None
    history = history_of(path)
    for text in TYPED:
        history.append_string(text)
    kept = path.read_text()
    for value in ("anna", "4111", "ghp_", "Sayrefitz"):
        assert value not in kept, value
    assert "[EMAIL]" in kept and "[CARD]" in kept and "[NAME]" in kept
    # In this prompt it is as it was typed; in the next one as it was kept.
    assert list(history.get_strings())[-len(TYPED) :] == list(TYPED)
    again = list(KeptHistory(path).load_history_strings())
    assert len(again) == len(TYPED) and again[-1] == "write to [EMAIL] about card [CARD]"
    assert os.stat(path).st_mode & 0o077 == 0


def test_what_can_not_be_searched_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = KeptHistory(tmp_path / "history")
    history.store_string("x = 1  # anna@example.org" + " " * kept_history.MOST)
    broken = Blotter()
    broken._missing = "a package is missing"
    monkeypatch.setattr(broken, "make", lambda: type("Done", (), {"join": lambda self: None})())
    monkeypatch.setattr(kept_history, "BLOTTER", broken)
    history.store_string("print(1)")
    assert not (tmp_path / "history").exists()
