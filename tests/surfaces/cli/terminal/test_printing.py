"""Notes at a terminal."""

import pytest

from divingbell.surfaces.cli.terminal.notes import NOTE
from divingbell.surfaces.cli.terminal.printing import _between_words


def test_a_note_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    words = "variables and files that code has made are gone " * 3
    broken = _between_words(f"{NOTE}{words}\n  as it was").split("\n")
    assert max(map(len, broken)) <= 40
    assert " ".join(" ".join(broken[:-1]).split()) == f"{NOTE}{words}".strip()
    assert broken[-1] == "  as it was"
