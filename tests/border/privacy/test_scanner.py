"""The scanner: pieces, engines, hostile texts, and what holds of every text."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.privacy import engines, scanner, views
from divingbell.border.privacy.engines import Gate, HyperscanEngine, Re2Engine
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.shape import Shape
from divingbell.errors import ConfigError
from tests.border.privacy.samples import FOUND, NOT_FOUND, marked

ALL = Scanner(KINDS)
TEXTS = [*(marked(sample)[0] for samples in FOUND.values() for sample in samples), *NOT_FOUND]
TOGETHER = "\n\n".join(TEXTS)
NEUTRAL = "Nothing is told here of anyone. The sea was calm, and the bell went down.\n"

HOSTILE = {
    "at signs": "@",
    "mailboxes": "a@",
    "addresses": "a@b.co ",
    "labels": "a@b.",
    "digits": "1",
    "groups": "4111 ",
    "cards": "4111 1111 1111 1111 ",
    "false cards": "card 4111 1111 1111 1112 ",
    "telephones": "call 0123 456 789 ",
    "plus": "+1 2 3 4 5 6 7 8 ",
    "octets": "8.8.8.8 ",
    "colons": "1:",
    "accounts": "DE89 3704 ",
    "tokens": "eyJaaaaaaaaaa.",
    "keys": "-----BEGIN PRIVATE KEY-----",
    "key lines": "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnopqrst",
    "bearers": "bearer aaaaaaaaaaaa ",
    "passwords": "password=",
    "users": "a://a:b@c ",
    "percent": "%40",
    "unicode escapes": "\\u0040",
    "colours": "\x1b[31m",
    "zero width": "1\u200b",
    "full width": "１",
    "words": "phone card ssn passport born ",
    "births": "born 1/1/1990 ",
    "quotes": '"a"@',
    "backslashes": "\\",
    "national ids": "hetu 131052-308X pesel 44051401358 nie X2482300A ",
    "groups of national ids": "nhs 943 476 587 ",
    "tax numbers": "tax 36574261808 tfn 123 456 780 ein 91-1144442 ",
    "passports": "passport C01X00T47",
    "passport words": "passport AB1 ",
    "social": "ssn 000-12-3456 social 123 45 ",
    "key prefixes": "sk-",
    "false keys": "sk-aaaaaaaaaaaaaaaaaaaaaa ghp_aaaaaaaa AKIAAAAAAAAAAAAAAAAA ",
    "endless key": "xoxb-a1B2c3D4e5",
    "cut": "4111 11...",
    "cut in JSON": "4111 11\\u2026",
    "cut cards": "card 4 1 1 1 1 1 ",
    "cut accounts": "GB82WEST...",
    "cut keys": "sk-aB3dE5gH...",
    "cut passwords": "password=aB3dE5gH...",
    "dots": ".",
    "ages": "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQ ",
    "cells": "caller 12 12 12 12 ",
    "mobiles of the world": "cep 12 12 12 12 gsm: 12 12 12 12 ",
    "right to left": "טלפון: 12 12 12 12 ",
    "numbers and mailboxes": "555 123 45 67,x@",
    "mailboxes and numbers": "x@example.org, (555) 12 34 56 7, ",
}


class Work:
    """What a scanner does: bytes that its engine reads, looks at hits, and checks of values."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = 0
        self.looks: Counter[Shape] = Counter()
        self.checks = 0
        self.scanner = Scanner(KINDS)
        self.scanner._shapes = [
            dataclasses.replace(shape, check=self._counting(shape.check))
            for shape in self.scanner._shapes
        ]
        hits, look = self.scanner._engine.hits, Shape.look

        def reading(data: bytes) -> Any:
            self.read += len(data)
            return hits(data)

        def looking(shape: Shape, *arguments: Any) -> Any:
            self.looks[shape] += 1
            return look(shape, *arguments)

        self.scanner._engine = type("Reading", (), {"hits": staticmethod(reading)})()
        monkeypatch.setattr(Shape, "look", looking)

    def judge(self, text: str) -> None:
        """Look through a text, and see that the work was in proportion to it."""
        self.read = self.checks = 0
        self.looks.clear()
        self.scanner.finds(text)
        size = len(text.encode())
        # As it stands, and twice without its disguises, in pieces that overlap a little.
        assert self.read <= 3.3 * size + 10_000, text[:60]
        for shape, looks in self.looks.items():
            most = 3.5 * len(text) / shape.reach + 10
            # A look for each word with a number behind it, which has five digits or more.
            most = max(most, len(text) / 6) if shape.rare_words else most
            assert looks <= most, (shape, text[:60])
        assert self.checks <= 2 * len(text), text[:60]

    def _counting(self, check: Callable[[str], bool]) -> Callable[[str], bool]:
        def counted(value: str) -> bool:
            self.checks += 1
            return check(value)

        return counted


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_is_in_proportion_to_a_hostile_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Work(monkeypatch).judge(HOSTILE[name] * (50_000 // len(HOSTILE[name])))


@pytest.mark.parametrize("kind", FOUND)
def test_it_is_for_values_in_a_row_right_ones_and_false_ones(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    for sample in FOUND[kind]:
        for text in (marked(sample)[0], _falsified(sample)):
            work.judge(f"{text} " * (4_000 // len(text)))


def _falsified(sample: str) -> str:
    """The same with another last digit or letter in the value, which check digits forbid."""
    text, value = marked(sample)
    other = "8" if value.endswith("7") else "7"
    return text.replace(value, value[:-1] + other)


def test_each_shape_has_to_look_at_one_of_these_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    looked: set[Shape] = set()
    for text in (*HOSTILE.values(), *(marked(each)[0] for kind in FOUND.values() for each in kind)):
        work.looks.clear()
        work.scanner.finds(f"{text} " * (400 // len(text) + 1))
        looked |= work.looks.keys()
    assert [shape for shape in work.scanner._shapes if shape not in looked] == []


def test_an_own_pattern_is_found_in_its_place_after_letters_of_several_bytes() -> None:
    own = Scanner(KINDS, patterns={"OWN": r"EMP-\d{6}"})
    text = "иван@пример.рф x@пр.рф Zoë EMP-123456 b"
    assert [text[f.start : f.end] for f in own.finds(text) if f.kind == "OWN"] == ["EMP-123456"]


def test_a_number_before_a_disguise_is_not_cut_into_another_one() -> None:
    for length in range(270, 300):
        text = "7" * 20 + "555.123.4567 x12from" + " " * (length - 20) + "a\u200bb"
        assert ALL.finds(text) == []


def test_matches_of_an_own_pattern_are_as_many_as_characters_at_most() -> None:
    own = Scanner((), patterns={"OWN": "a.*b", "OTHER": "a+"})
    finds = own.finds("ab" * 20_000)
    assert [find.kind for find in finds] == ["OWN"]


@pytest.mark.parametrize("sample", TEXTS)
def test_a_text_that_is_cut_anywhere_is_no_error(sample: str) -> None:
    for end in range(len(sample)):
        finds = ALL.finds(sample[:end])
        assert all(0 <= find.start < find.end <= end for find in finds)


def test_a_value_is_found_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ALL.finds(TOGETHER)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(scanner, "PIECE", size)
        assert ALL.finds(TOGETHER) == whole


def test_a_stream_that_holds_back_the_longest_loses_nothing() -> None:
    few = Scanner(["EMAIL", "CARD", "PHONE"])
    text = NEUTRAL * 5 + "call me on 467 3395 or ann@example.org, card 630427373398 " + NEUTRAL * 30
    wanted = {text[find.start : find.end] for find in few.finds(text)}
    assert len(wanted) == 3
    for end in range(0, len(text), 13):
        settled = max(0, end - few.longest)
        seen = {text[f.start : f.end] for f in few.finds(text[:end]) if f.start < settled}
        after = {text[f.start : f.end] for f in few.finds(text) if f.start < settled}
        assert seen == after


def test_it_gives_way_after_each_piece() -> None:
    steps = ALL.scanning(NEUTRAL * (4 * scanner.PIECE // len(NEUTRAL)))
    assert sum(1 for _ in steps) >= 4


def test_threads_may_share_a_scanner() -> None:
    alone = ALL.finds(TOGETHER)
    with ThreadPoolExecutor(4) as threads:
        for finds in threads.map(ALL.finds, itertools.repeat(TOGETHER, 16)):
            assert finds == alone


def test_both_engines_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with_hyperscan = ALL.finds(TOGETHER)
    assert type(ALL._engine) is HyperscanEngine
    monkeypatch.setattr(engines, "ENGINES", (Re2Engine,))
    engines.engine.cache_clear()
    try:
        other = Scanner(KINDS)
        assert type(other._engine) is Re2Engine
        assert other.finds(TOGETHER) == with_hyperscan
        own = Scanner((), patterns={"EMPLOYEE": r"EMP-\d{6}"})
        assert own.finds("é EMP-123456") == [Find(2, 12, "EMPLOYEE")]
        with pytest.raises(ConfigError, match="Write it without look-around"):
            Scanner((), patterns={"OWN": "(?<=a)b"})
    finally:
        engines.engine.cache_clear()


def test_without_an_engine_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(gates: Sequence[Gate]) -> Any:
        raise ImportError

    monkeypatch.setattr(engines, "ENGINES", (missing, missing))
    engines.engine.cache_clear()
    with pytest.raises(ConfigError, match="pip install hyperscan"):
        Scanner(["EMAIL"])


junk = st.text(st.sampled_from("ab1 @.-+:/\\\"'%&;\n\t\x1b[é中\u200b４"), max_size=12)
texts = st.lists(st.one_of(st.sampled_from(TEXTS), junk, st.text(max_size=8)), max_size=6).map(
    "".join
)


@given(texts)
def test_finds_are_sorted_disjoint_within_the_text_and_always_the_same(text: str) -> None:
    finds = ALL.finds(text)
    edges = [edge for find in finds for edge in (find.start, find.end)]
    assert edges == sorted(edges)
    assert all(0 <= find.start < find.end <= len(text) for find in finds)
    assert ALL.finds(text) == finds


@given(texts)
def test_text_around_it_loses_no_find(text: str) -> None:
    before = NEUTRAL + "\n\n"
    covered = {
        place
        for find in ALL.finds(before + text + "\n\n" + NEUTRAL)
        for place in range(find.start - len(before), find.end - len(before))
    }
    assert all(covered >= {*range(find.start, find.end)} for find in ALL.finds(text))


@pytest.mark.parametrize("text", ["電話1", "телефон 1", "phone 1 ", "telefono fax mobile phone 1"])
def test_words_about_telephones_without_a_number_cost_no_look(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    look = Shape.look

    def counted(self: Shape, *given: Any) -> Any:
        looked.append(self)
        return look(self, *given)

    monkeypatch.setattr(Shape, "look", counted)
    scanner = Scanner(KINDS)
    assert scanner.finds(text * 500) == []
    assert not looked
    [find] = scanner.finds(f"{text * 500} phone: 555-123-4567")
    assert find.kind == "PHONE"
    assert len(looked) < 100


def test_no_tiny_text_with_a_value_passes_for_one_without() -> None:
    found = [text for text in TEXTS if _found_by_engine(text)]
    assert len(found) > 100
    assert [text for text in found if not scanner.may_hold(text)] == []
    # And what such a text says is not looked for: the words of most results.
    assert not scanner.may_hold("text/plain\n2\nresult\nok\nstructuredContent")


@given(st.text("aA1 -./_:=@%\\\n", max_size=60))
def test_a_tiny_text_says_the_same_with_the_engine_and_without(text: str) -> None:
    assert scanner.may_hold(text) or not _found_by_engine(text)


def _found_by_engine(text: str) -> list[Find]:
    return views.finished(ALL.scanning(text))
