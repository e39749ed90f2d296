"""Learned values are found again as whole words, however they are written."""

import csv
import html
import io
import json
import random
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.privacy import learned
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.learned import Learned

VALUES = (
    "Ann Lee",
    "Zoë O'Brien",
    'Jo "JJ" Doe',
    "12 Main St\nOslo",
    "Ж. Иванова",
    "Smith & Sons <x>",
    "ann@example.org",
)


def _csv(value: str) -> str:
    file = io.StringIO()
    csv.writer(file).writerow([1, value, "x"])
    return file.getvalue()


def _traceback(value: str) -> str:
    try:
        raise ValueError(f"no such customer: {value!r}")
    except ValueError:
        return traceback.format_exc()


WAYS: dict[str, Callable[[str], str]] = {
    "text": lambda value: f"It is {value}.",
    "large": lambda value: f"It is {value.upper()}.",
    "small": lambda value: f"It is {value.lower()}.",
    "repr": lambda value: repr({"name": value}),
    "repr of JSON": lambda value: repr(json.dumps({"name": value}).encode()),
    "ascii": ascii,
    "JSON": lambda value: json.dumps({"name": value}),
    "JSON in Unicode": lambda value: json.dumps({"name": value}, ensure_ascii=False),
    "JSON in JSON": lambda value: json.dumps({"text": json.dumps({"name": value})}),
    "CSV": _csv,
    "HTML": lambda value: f"<td>{html.escape(value)}</td>",
    "traceback": _traceback,
    "after a line end": lambda value: json.dumps(f"customers:\n{value}\n"),
}


def taught(*values: str, kind: str = "NAME") -> Learned:
    known = Learned()
    assert known.add((value, kind) for value in values) == 0
    return known


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_found_however_it_is_written(value: str, way: str) -> None:
    known = taught(*VALUES)
    text = WAYS[way](value)
    [find] = known.finds(text)
    rest = text[: find.start] + text[find.end :]
    assert not any(word in rest for word in ("Ann", "Bri", "Doe", "Oslo", "Smith", "example"))


def test_a_name_is_not_found_within_a_word() -> None:
    assert taught("Ann").finds("The Annual report of Joann; Ann_1") == []
    assert taught("Ann").finds("Ann, ANN") == [Find(0, 3, "NAME"), Find(5, 8, "NAME")]


def test_a_date_is_found_before_its_time_and_as_python_writes_it() -> None:
    learned = Learned()
    learned.add([("1984-03-02", "BIRTH_DATE")])
    for text in ("1984-03-02T00:00:00", "1984-03-02T", "1984-03-02 00:00", "1984-03-02"):
        assert [find.end for find in learned.finds(text)] == [10], text
    for text in ("datetime.date(1984, 3, 2)", "datetime.datetime(1984, 3, 2, 0, 0)"):
        [find] = learned.finds(text)
        assert text[find.start : find.end] == "1984, 3, 2"
        assert learned.meant_by("1984, 3, 2") == "1984-03-02"
    for text in ("(1984, 3, 21)", "1984-03-021", "x1984-03-02T00:00", "1984-03-02U"):
        assert learned.finds(text) == [], text


def test_a_short_word_counts_with_a_capital_letter_only() -> None:
    known = taught("Mark", "Alexander")
    text = "mark what Mark and alexander say"
    assert [text[find.start : find.end] for find in known.finds(text)] == ["Mark", "alexander"]


@pytest.mark.parametrize("value", ["", " ", "a", "Al", "the", "null", "1234", "--", "N/A"])
def test_what_says_nothing_is_not_learned(value: str) -> None:
    assert len(taught(value)) == 0


def test_a_value_within_a_longer_one_is_found_by_itself_too() -> None:
    known = taught("Ann Lee", "Ann Lee Smith")
    text = "Ann Lee, Ann Lee Smith"
    assert [text[find.start : find.end] for find in known.finds(text)] == [*text.split(", ")]


def test_part_of_a_word_hides_no_value_that_begins_in_it() -> None:
    assert taught("an Ann", "Ann Lee").finds("Joan Ann Lee") == [Find(5, 12, "NAME")]


def test_there_is_an_end_to_what_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "MOST_VALUES", 3)
    known = Learned()
    assert known.add((f"person {number}", "NAME") for number in range(5)) == 2
    assert len(known) == 3
    assert known.add([("person 1", "NAME")]) == 0  # which is known
    assert len(known.finds("person 1, person 2, person 4")) == 2


def test_a_value_that_is_added_is_built_in_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    class Counted(learned._Generation):
        def __init__(self, forms: list[learned._Form]) -> None:
            nonlocal built
            built += len(forms)
            super().__init__(forms)

    monkeypatch.setattr(learned, "_Generation", Counted)
    known = Learned()
    for number in range(2_000):
        known.add([(f"person number {number}", "NAME")])
    assert built <= 2_000 * 3 * learned.STEP
    assert len(known._generations) <= 4
    assert len(known.finds("person number 0, person number 1999")) == 2


def test_a_value_is_found_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    known = taught("Ann Lee", "Bob")
    text = "Ann Lee met Bob. " * 20
    whole = known.finds(text)
    assert len(whole) == 40
    for size in (1, 5, 64):
        monkeypatch.setattr(learned, "PIECE", size)
        assert known.finds(text) == whole


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["aaa", "aaaaaa"], "a" * 50_000),
        (["x a", "a a a a a a a"], "xa a" * 12_000),
        ([f"a{' a' * n}" for n in range(1, 40)], "ba a" * 12_000),
    ],
)
def test_the_work_is_in_proportion_to_a_hostile_text(values: list[str], text: str) -> None:
    known = taught(*values)
    read = 0
    for generation in known._generations:
        matches = generation.matches

        def reading(
            low: str, matches: Callable[..., list[tuple[int, int, int]]] = matches
        ) -> object:
            nonlocal read
            read += len(low)
            return matches(low)

        generation.matches = reading  # type: ignore[assignment]
    known.finds(text)
    words = len(text.split())
    assert read <= 2 * len(text) + words * 3 * known.longest


CUT = ("Alexandra Leeson", "12 Long Harbour Street, Oslo", "ann.leeson@example.org", "Zoë O'Brien")


@pytest.mark.parametrize("dots", ["...", "…", "\n[… 1,000 characters left out …]"])
@pytest.mark.parametrize("value", CUT)
def test_a_value_that_was_cut_is_found_by_its_beginning(value: str, dots: str) -> None:
    known = taught(*CUT)
    for size in range(learned.SHORTEST_CUT, len(value)):
        text = f"0  17  {value[:size]}{dots}  5"
        [find] = known.finds(text)
        # Of four dots the last three are as good as the first.
        assert (find.start, text[find.end : 7 + size].strip(".")) == (7, ""), text


@pytest.mark.parametrize(
    "text",
    ["Alex... Ann...", "Alexandrine...", "a12 Long...", "Alexandra_...", "loading...", "...", "…",
     "Alexan. . .", "12 Lo\nng..."],
)  # fmt: skip
def test_what_no_value_begins_with_is_not_found(text: str) -> None:
    assert taught("Alexandra Leeson", "12 Long Harbour Street", "Loading Dock").finds(text) == []


def test_a_mailbox_that_was_cut_is_found_beside_a_name_that_begins_so() -> None:
    known = taught("Alexandra")
    assert known.finds("alexan...") == []
    known.add([("alexandra.leeson@example.org", "EMAIL")])
    assert [find.kind for find in known.finds("alexan... Alexan...")] == ["EMAIL", "NAME"]


@pytest.mark.parametrize("dots", ["", ".", ".."])
def test_one_that_may_have_been_cut_is_waited_for(dots: str) -> None:
    known = taught("Alexandra Leeson")
    assert known.open_from(f"0  Alexandra Le{dots}") == 3
    assert known.open_from(f"0  Alexandra Lu{dots}") == 15 + len(dots)


def test_one_that_was_cut_is_found_among_all_generations() -> None:
    known = Learned()
    for number in range(40):
        known.add([(f"{number:02} Harbour Street", "ADDRESS")])
    assert len(known.finds("".join(f"{number:02} Har...\n" for number in range(40)))) == 40


@pytest.mark.parametrize(
    "text", ["a ... " * 9_000, "b c " * 12_000 + "...", "a b c d e...f" * 4_000]
)
def test_the_work_for_what_was_cut_is_in_proportion_to_a_hostile_text(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = taught("b c " * 100, "e f g")
    asked = 0
    beginning_with = learned._Generation.beginning_with

    def counting(generation: learned._Generation, beginning: str, **how: bool) -> object:
        nonlocal asked
        asked += 1
        return beginning_with(generation, beginning, **how)

    monkeypatch.setattr(learned._Generation, "beginning_with", counting)
    known.finds(text)
    assert asked <= len(text.split()) * len(known._generations)


def test_threads_may_learn_and_look_at_once() -> None:
    known = Learned()

    def learn(start: int) -> int:
        for number in range(start, start + 50):
            known.add([(f"person number {number}", "NAME")])
            known.finds("person number 0")
        return start

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(learn, range(0, 400, 50)))
    assert len(known) == 400
    shuffled = random.Random(1).sample(range(400), 20)
    assert all(len(known.finds(f"person number {number}")) == 1 for number in shuffled)


@given(st.lists(st.text(min_size=1, max_size=12), max_size=5), st.text(max_size=40))
def test_whatever_is_learned_finds_are_sorted_and_disjoint(values: list[str], text: str) -> None:
    known = Learned()
    known.add((value, "NAME") for value in values)
    text += " ".join(values)
    finds = known.finds(text)
    edges = [edge for find in finds for edge in (find.start, find.end)]
    assert edges == sorted(edges)
    assert all(0 <= find.start < find.end <= len(text) for find in finds)


def test_letters_beyond_ascii_are_found_as_bytes_and_addresses_write_them() -> None:
    learned = Learned()
    learned.add([("Zoë Großmann", "NAME")])
    for written in (
        "a/Zo%C3%AB%20Gro%C3%9Fmann.txt",
        "Zo%C3%AB+Gro%C3%9Fmann",
        "Zo\\u00eb Gro\\u00dfmann",
    ):
        [find] = learned.finds(written)
        assert learned.meant_by(written[find.start : find.end]) == "Zoë Großmann"
    assert learned.finds(repr("Zoë Großmann".encode()))
    assert learned.meant_by("ZOË GROßMANN") == "ZOË GROßMANN", "no escape, but as it was written"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the price of Price, PRICE and a price list", ["Price", "PRICE"]),
        ("Ann Summer Price, at a price in summer", ["Summer", "Price"]),
        ("first_name: Summer, season: summer", ["Summer"]),
        ("Zebulon and zebulon", ["Zebulon", "zebulon"]),
    ],
)
def test_a_name_that_is_an_ordinary_word_counts_with_a_capital_letter(
    text: str, found: list[str]
) -> None:
    known = taught("Price", "Summer", "Zebulon")
    assert [text[find.start : find.end] for find in known.finds(text)] == found


def test_other_values_that_are_ordinary_words_are_found_in_any_letters() -> None:
    known = Learned()
    known.add([("Silver", "PASSWORD"), ("young", "NAME")])
    # Whoever writes a name in small letters is taken at their word.
    assert len(known.finds("silver Silver young Young")) == 4


def test_all_of_another_is_found_and_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Learned(), Learned()
    ours.add([("Zelda Okoye", "NAME")])
    theirs.add([(f"Given{number}", "NAME") for number in range(100)])
    with monkeypatch.context() as patch:
        patch.setattr(learned, "_Generation", None)
        assert ours.add_all_of(theirs) == ours.add_all_of(theirs) == 0
    text = "Zelda Okoye, Given7"
    assert len(ours.finds(text)) == 2 and len(theirs.finds(text)) == 1
    # However many there were, one look goes through few automata.
    for number in range(30):
        other = Learned()
        other.add([(f"Another{number}", "NAME")])
        assert ours.add_all_of(other) == 0
    assert len(ours._generations) <= learned.MOST_GENERATIONS
    assert len(ours.finds("Another0 Another17 Another29 Given99")) == 4


def test_of_another_that_finds_no_room_it_is_said_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Learned(), Learned()
    ours.add([("Zelda", "NAME"), ("Okoye", "NAME")])
    theirs.add([("Okoye", "NAME"), ("Leeson", "NAME"), ("Robert", "NAME")])
    monkeypatch.setattr(learned, "MOST_VALUES", 3)
    assert ours.add_all_of(theirs) == 2
