"""The screen joins shapes and learned values."""

from divingbell.border.privacy.find import Find
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen


def screen(*values: tuple[str, str]) -> Screen:
    known = Learned()
    known.add(values)
    return Screen(Scanner(KINDS), known)


def test_both_are_found_and_what_overlaps_is_one() -> None:
    text = "Ann Lee <ann.lee@example.org>, 12 Main St 555-123-4567"
    finds = screen(("Ann Lee", "NAME"), ("ann.lee", "NAME"), ("12 Main St", "ADDRESS")).finds(text)
    assert [(find.kind, text[find.start : find.end]) for find in finds] == [
        ("NAME", "Ann Lee"),
        ("EMAIL", "ann.lee@example.org"),
        ("ADDRESS", "12 Main St"),
        ("PHONE", "555-123-4567"),
    ]


def test_a_learned_value_is_found_without_its_disguise() -> None:
    finds = screen(("Ann Lee", "NAME")).finds("Ann%20Lee A\x1b[1mnn Lee")
    assert finds == [Find(0, 9, "NAME"), Find(10, 21, "NAME")]


def test_what_is_learned_later_is_found_from_then_on() -> None:
    both = screen()
    assert both.finds("Ann Lee") == []
    both.learned.add([("Ann Lee", "NAME")])
    assert both.finds("Ann Lee") == [Find(0, 7, "NAME")]
    assert both.longest == max(Scanner(KINDS).longest, both.learned.longest)


def test_it_gives_way() -> None:
    steps = screen(("Ann Lee", "NAME")).scanning("a word " * 20_000)
    assert sum(1 for _ in steps) > 4
