"""The example in a skill's SKILL.md."""

import re

import pytest

from divingbell.skills import document

BEGINNING = "## Example\n\n~~~~python\n"


@pytest.mark.parametrize(
    ("text", "example"),
    [
        (f"# f\n\n{BEGINNING}f()\n~~~~\n\n## Tools", "f()"),
        (f"{BEGINNING}f()\ng()\n~~~~", "f()\ng()"),
        (f"{BEGINNING}f()\n~~~~~\n~~~~\n{BEGINNING}g()\n~~~~", "f()\n~~~~~"),
        (f"{BEGINNING}\n~~~~", ""),
        (f"{BEGINNING}f()", ""),
        (f"#{BEGINNING}f()\n~~~~", ""),
        ("", ""),
    ],
)
def test_the_first_example_is_found(text: str, example: str) -> None:
    assert document.example_in(text) == example


def test_a_text_of_beginnings_is_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []

    class Counted:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def search(self, text: str, start: int = 0) -> re.Match[str] | None:
            starts.append(start)
            return self._pattern.search(text, start)

    for name in ("_BEGINNING", "_END"):
        monkeypatch.setattr(document, name, Counted(getattr(document, name)))
    assert document.example_in(BEGINNING * 8_000) == ""
    assert starts == [0, len(BEGINNING)]
