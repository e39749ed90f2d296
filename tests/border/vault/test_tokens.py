"""Tokens: what they look like, how they are drawn, and what only looks like one."""

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.vault import tokens
from divingbell.border.vault.vault import MOST_VALUES
from divingbell.settings import kinds


def test_a_token_names_its_kind_and_a_random_number() -> None:
    drawn = {tokens.draw("EMAIL", 0, ()) for _ in range(200)}
    assert all(re.fullmatch(r"\[EMAIL_[1-9]\d{5}\]", token) for token in drawn)
    assert len(drawn) > 190
    assert all(tokens.TOKEN.fullmatch(token) for token in drawn)


def test_a_guess_hits_less_than_once_in_ten_thousand_in_all_vaults_that_are_reached() -> None:
    # Whoever guesses chooses how many digits; each vault may be as full as makes that worst.
    drawn = Counter(tokens.digits_for(count) for count in range(MOST_VALUES))
    for digits, count in drawn.items():
        possible = 9 * 10 ** (digits - 1)
        assert tokens.MOST_REACHED * count / possible < 1 / tokens.CHANCE, digits
    token = tokens.draw("PHONE", MOST_VALUES, ())
    assert len(token) <= tokens.LONGEST and tokens.TOKEN.fullmatch(token)


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


WORDS = [
    "[EMAIL_482715]",
    "[A1_100000]",
    "<email 4827>",
    "{Phone-482715]",
    "[IBAN_999999999999999]",
]
pieces = st.one_of(
    st.sampled_from(WORDS), st.text(alphabet='[]<>{}_- ABz019"\\/\né中\u2028', max_size=12)
)
texts = st.lists(pieces, max_size=4).map("".join)


def escaped(text: str, places: set[int]) -> str:
    """A text as JSON has it, with some of its characters as numbers."""
    return "".join(
        f"\\u{ord(each):04x}" if place in places else json.dumps(each, ensure_ascii=False)[1:-1]
        for place, each in enumerate(text)
    )


@given(st.lists(texts, max_size=3), st.sets(st.integers(0, 20)), st.booleans())
def test_json_that_names_nothing_has_no_token_in_any_text(
    said: list[str], places: set[int], is_name: bool
) -> None:
    written = [f'"{escaped(each, places)}"' for each in said]
    named = ",".join(f"{each}:{each}" for each in written)
    data = f"{{{named}}}" if is_name else f"[{','.join(written)}]"
    assert list(json.loads(data)) == (list(dict.fromkeys(said)) if is_name else said)
    if not tokens.may_be_in_json(data.encode()):
        assert not [each for each in said if tokens.in_text(each) or [*tokens.near_misses(each)]]


@pytest.mark.parametrize("word", WORDS)
def test_json_with_a_token_or_a_near_miss_is_never_passed_over(word: str) -> None:
    assert tokens.in_text(word) or [*tokens.near_misses(word)]
    for place in range(-1, len(word)):
        assert tokens.may_be_in_json(f'["{escaped(word, {place})}"]'.encode())


@pytest.mark.parametrize(
    "value", [[[]] * 100, {"a": [1, 2.5, "text [x] <b> {c}"]}, 'line\nline "é"', "C:\\users", 2026]
)
def test_most_json_is_told_to_name_nothing(value: object) -> None:
    assert not tokens.may_be_in_json(json.dumps(value, ensure_ascii=False).encode())
