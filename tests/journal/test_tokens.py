"""Tokens are counted as o200k_base has them, and nothing that is counted breaks the count."""

import asyncio
import functools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.journal import tokens
from divingbell.journal.ledger import Accountant, Definitions
from divingbell.journal.tokens import Count, count, count_later, measure

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ('{"name":"x","value":12345}', 10),
        ("漢字", 2),
    ],
)
def test_known_texts_have_their_known_counts(text: str, expected: int) -> None:
    assert count(text) == expected


def test_what_looks_like_a_control_token_is_text() -> None:
    assert count("<|endoftext|>") > 1


@given(st.text(st.characters()))
def test_any_text_can_be_counted(text: str) -> None:
    found = measure(text)
    assert not found.estimated
    assert 0 <= found.tokens <= 4 * len(text)
    assert bool(found.tokens) is bool(text)


def test_half_a_character_can_be_counted() -> None:
    assert count("\ud800 x") > 0


def test_pieces_count_like_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The bell went down at noon, and the line held.\n" * 2000
    monkeypatch.setattr(tokens, "PIECE", len(text))
    whole = count(text)
    monkeypatch.setattr(tokens, "PIECE", 1000)
    assert count(text) == pytest.approx(whole, rel=0.01)


def test_the_cache_of_the_tokenizer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CACHE", 1000)
    monkeypatch.setattr(tokens, "LOOK_EVERY", 10_000)
    tokenizer = tokens._tokenizer()
    assert tokenizer is not None
    for start in range(0, 100_000, 100):
        count(" ".join(f"word{number}" for number in range(start, start + 100)))
        assert tokenizer.cache_len < 1000 + 10_000


def test_a_text_without_spaces_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PIECE", 100)
    assert count("x" * 10_000) > 0


def test_beyond_the_limit_it_is_an_estimate_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one two three four five six seven\n" * 1000
    exact = count(text)
    monkeypatch.setattr(tokens, "MOST_COUNTED", len(text) // 10)
    found = measure(text)
    assert found.estimated and found.tokens == pytest.approx(exact, rel=0.02)


async def test_long_texts_are_counted_off_the_loop() -> None:
    text = "a word and another\n" * 5000
    async with asyncio.timeout(PATIENCE):
        assert await count_later(text) == measure(text)
        assert await count_later("hello world") == Count(2)


def test_without_a_tokenizer_it_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_tokenizer", lambda: None)
    assert measure("x" * 9) == Count(3, estimated=True)


async def test_the_tokenizer_is_not_loaded_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tokens._loaded.__wrapped__
    threads = []

    @functools.cache
    def load() -> object:
        threads.append(threading.current_thread())
        return loaded()

    monkeypatch.setattr(tokens, "_loaded", load)
    assert (await count_later("hello world")).tokens == 2
    ledger = await Accountant(Definitions()).close_execution("1 + 1", "2")
    assert ledger.code_tokens == count("1 + 1")
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
