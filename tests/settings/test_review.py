"""The settings of the review."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from divingbell import ConfigError
from divingbell.settings import config
from divingbell.settings.review import ReviewAction, ReviewKind, ReviewRules, ReviewSettings, worst

PAGE = Path(__file__).parents[2] / "docs/review.md"


def _load(tmp_path: Path, text: str) -> ReviewSettings:
    file = tmp_path / "divingbell.toml"
    file.write_text(text)
    return config.load(file, {}, {}).review


def test_the_tables_are_read(tmp_path: Path) -> None:
    assert _load(tmp_path, "") == ReviewSettings()
    text = '[review]\nimports = "pandas"\n[review.rules]\nimport = "ask"\nprocess = "deny"'
    chosen = _load(tmp_path, text)
    assert chosen.imports == ("pandas",)
    assert chosen.rules == ReviewRules(imports="ask", process="deny")
    assert (chosen.action("import"), chosen.action("process")) == ("ask", "deny")


def test_by_default_nothing_is_stopped() -> None:
    kinds: tuple[ReviewKind, ...] = get_args(ReviewKind)
    stopping = [kind for kind in kinds if ReviewSettings().action(kind) in ("ask", "deny")]
    assert stopping == ["import"] and ReviewSettings().lets_in("anything.at.all")
    assert worst(*get_args(ReviewAction)) == "deny" and worst() == "allow"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[review]\nimports = []", "imports must be a list of patterns over modules"),
        ("[review]\nimports = [5]", "5 is no pattern"),
        ('[review.rules]\nprocess = "no"', '"allow" or "warn" or "ask" or "deny"'),
        ('[review.rules]\nforks = "deny"', "there is no setting 'forks'"),
        ("review = true", "[review] must be a table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)


def test_the_page_has_every_kind_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?\"?([\w–]+)\"?`? \|", PAGE.read_text("utf-8"), re.M))
    names = {"imports": "import"}
    for item in fields(ReviewRules):
        default = getattr(ReviewRules(), item.name)
        assert rows[names.get(item.name, item.name)] == (default or "–"), item.name
