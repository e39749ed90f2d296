"""Patterns mean what shells mean by them, and hostile text can't make them slow."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.settings.patterns import MAX_PATTERN, Pattern, Patterns


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("github.*", ["github.a", "github."], ["github", "xgithub.a", "Github.a"]),
        ("*", ["", "x", "a\nb"], []),
        ("", [""], ["x"]),
        ("a?c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("a*a", ["aa", "aba"], ["a", "ab"]),
        ("*.get_*.x", ["s.get_a.x"], ["s.get_.", "get_a.x"]),
        ("[abc]x", ["ax", "cx"], ["dx", "x"]),
        ("[!abc]x", ["dx"], ["ax", "x"]),
        ("[a-c-]", ["b", "-"], ["d"]),
        ("[]]", ["]"], ["["]),
        ("[!]]", ["x"], ["]"]),
        ("[z-a]", [], ["a", "z", ""]),
        ("[!z-a]", ["a"], [""]),
        ("[^a]", ["^", "a"], ["b"]),
        ("a[b", ["a[b"], ["ab"]),
        ("(.+)$", ["(.+)$"], ["x"]),
        ("[\\]", ["\\"], ["]"]),
    ],
)
def test_patterns_match_whole_texts_as_in_a_shell(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    made = Pattern(pattern)
    assert [text for text in yes if not made.matches(text)] == []
    assert [text for text in no if made.matches(text)] == []


@given(st.text("ab*?[]!-.", max_size=8), st.text("ab-.[]!", max_size=8))
def test_patterns_agree_with_the_standard_library(pattern: str, text: str) -> None:
    expected = re.compile(fnmatch.translate(pattern)).match(text) is not None
    assert Pattern(pattern).matches(text) is expected


def test_a_text_made_to_be_slow_is_not() -> None:
    # As one regular expression with repetition, this would not end today.
    assert not Pattern("*a" * 300 + "b").matches("a" * 200_000)
    assert Pattern("*" * MAX_PATTERN).matches("a" * 100_000)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        Pattern("a" * (MAX_PATTERN + 1))


def test_an_exclamation_mark_takes_away() -> None:
    several = Patterns(["github.*", "!github.get_*"])
    assert several.matches("github.create") and not several.matches("github.get_me")
    assert not several.matches("git.create")
    others = Patterns(["!root"])
    assert others.matches("anyone") and not others.matches("root")
