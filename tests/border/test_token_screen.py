"""The screen that knows tokens: whole texts, and texts in pieces wherever they are cut."""

import pytest

from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.token_screen import LOOK_ALIKE, TokenScreen

KNOWN = Learned()
KNOWN.add([("Ann Lee", "NAME")])
SCREEN = TokenScreen(Scanner(KINDS), KNOWN, frozenset(KINDS))
TEXTS = [
    "to [EMAIL_482715] now\n",
    "[EMAIL_482715][PHONE_4915112345678] ann@example.org",
    "call [PHONE_4915112345678]\nor +49 30 901820",
    "ann@example.org[EMAIL_482715]",
    "[EMAIL_482715",
    "[EMAIL_ [EMAIL_4827] [JIRA_482715] [1, 2] [A",
    "Ann [NAME_482715] Lee, Ann Lee [NAME_482715]\n",
    "[" * 40 + "EMAIL_482715]",
]


def shown(piece: str, kind: str) -> str:
    return f"<{kind}>" if kind != LOOK_ALIKE else f"({piece[1:-1]})"


@pytest.mark.parametrize("text", TEXTS)
def test_the_pieces_are_the_whole_wherever_they_are_cut(text: str) -> None:
    every = PieceScreen(SCREEN, shown)
    expected = every.feed(text) + every.end()
    for at in range(len(text)):
        pieces = PieceScreen(SCREEN, shown)
        parts = [pieces.feed(text[:at]), pieces.feed(""), pieces.feed(text[at:]), pieces.end()]
        assert "".join(parts) == expected
    letters = PieceScreen(SCREEN, shown)
    assert "".join([*map(letters.feed, text), letters.end()]) == expected


def test_tokens_of_these_kinds_are_found_and_no_value_within_them() -> None:
    [find] = SCREEN.finds("call [PHONE_4915112345678] now")
    assert (find.start, find.end, find.kind) == (5, 26, LOOK_ALIKE)
    assert SCREEN.finds("[JIRA_482715]") == []


def test_what_covers_a_token_in_part_goes_with_it() -> None:
    known = Learned()
    known.add([("see [NAME_4827", "ADDRESS")])
    screen = TokenScreen(Scanner(KINDS), known, frozenset(KINDS))
    text = "see [NAME_482715]"
    assert all(find.end == len(text) for find in screen.finds(text))
