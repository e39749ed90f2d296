"""Tokens: what they look like, how they are drawn, and what only looks like one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.vault import tokens
from divingbell.settings import kinds


def test_a_token_names_its_kind_and_a_random_number() -> None:
    drawn = {tokens.draw("EMAIL", 0, ()) for _ in range(200)}
    assert all(re.fullmatch(r"\[EMAIL_[1-9]\d{5}\]", token) for token in drawn)
    assert len(drawn) > 190
    assert all(tokens.TOKEN.fullmatch(token) for token in drawn)


@pytest.mark.parametrize("count", [0, 1, 89, 90, 91, 899, 900, 10_000, 199_999])
def test_a_guess_hits_less_than_once_in_ten_thousand(count: int) -> None:
    token = tokens.draw("PHONE", count, ())
    digits = len(token) - len("[PHONE_]")
    possible = 9 * 10 ** (digits - 1)
    assert (count + 1) / possible <= 1 / tokens.CHANCE
    assert len(token) <= tokens.LONGEST


def test_one_that_is_taken_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([5, 5, 6])
    monkeypatch.setattr(tokens.secrets, "randbelow", lambda _: next(numbers))
    first = tokens.draw("CARD", 0, ())
    assert tokens.draw("CARD", 1, {first}) != first


def test_tokens_are_found_and_replaced_wherever_they_stand() -> None:
    text = "mailto:[EMAIL_482715],[EMAIL_482715] and [NATIONAL_ID_123456] but [EMAIL_1] [A_0123456]"
    assert tokens.in_text(text) == {"[EMAIL_482715]", "[NATIONAL_ID_123456]"}
    assert tokens.replaced("to [EMAIL_482715]!", lambda _: "ann@x.org") == "to ann@x.org!"
    assert tokens.TOKEN.search(tokens.defused("[EMAIL_482715]")) is None


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("EMAIL", True),
        ("NATIONAL_ID", True),
        ("email", False),
        ("A", False),
        ("X_1", False),
        ("", False),
        ("A" * 25, False),
    ],
)
def test_which_names_can_be_kinds(name: str, fits: bool) -> None:
    assert kinds.is_kind(name) is fits
    if fits:
        assert tokens.TOKEN.fullmatch(tokens.draw(name, 0, ()))


@given(st.text(alphabet="[]_ABZ0129x", max_size=200))
def test_what_is_defused_holds_no_token_any_more(text: str) -> None:
    assert tokens.in_text(tokens.replaced(text, tokens.defused)) == set()
