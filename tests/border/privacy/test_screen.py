"""The screen joins shapes and learned values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.privacy import scanner, views
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.kinds import KINDS, SECRETS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import LONGEST_OWN, Scanner
from divingbell.border.privacy.screen import Screen
from tests.border.privacy.samples import FOUND, marked


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


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("a line\nand another\n", "a line\nand another\n"),
        ("to ann@example.org\n", "to ann@example.org\n"),
        ("to ann@example.or", "to "),
        ("to: ann%40exam", "to: "),
        ("on 12 Mar", ""),
        ("it is 451 5986\n", "it is "),
        ("Ann ", ""),
        ("Ann\n", "Ann\n"),
        ("an Ann Le.", "an "),
        ("an Ann Le\n[", "an "),
        ("An\x1b[1", ""),
        ('{"451 5986"', ""),
        ("x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "x\n"),
        ("x\n-----BEGIN RSA PRIV", "x\n"),
        ("-----BEGIN CERTIFICATE-----\nMIIE\n", "-----BEGIN CERTIFICATE-----\nMIIE\n"),
    ],
)
def test_it_is_said_up_to_where_all_is_decided(text: str, end: str) -> None:
    assert text[: screen(("Ann Lee", "NAME")).settled(text).end] == end


def test_no_find_reaches_beyond_what_is_decided() -> None:
    finds, end = screen().settled("bob@example.org ann@example.org")
    assert (finds, end) == ([Find(0, 15, "EMAIL")], 16)


def test_secrets_alone_hold_back_no_numbers() -> None:
    secrets = Screen(Scanner(SECRETS), Learned())
    assert secrets.settled("12 of 451 5986 ").end == len("12 of 451 5986 ")


def test_own_patterns_hold_back_as_much_as_they_may_match() -> None:
    text = "a word " * 100
    narrow = Screen(Scanner((), {"OWN": r"EMP-\d{6}"}), Learned())
    wide = Screen(Scanner((), {"OWN": r"EMP \d{6}"}), Learned())
    assert (narrow.settled(text).end, wide.settled(text).end) == (700, 700 - LONGEST_OWN)


@pytest.mark.parametrize(
    "text", ["ann@exam\rple.org", "ann@exX\bample.org", "4111X\b 1111 1111 1111"]
)
def test_what_is_overwritten_hides_no_value(text: str) -> None:
    assert [(find.start, find.end) for find in screen().finds(text)] == [(0, len(text))]


def test_progress_is_no_value() -> None:
    bar = "".join(f"\r{n:3}%|███▌      | {n}/100 [00:01<00:01, 33.2{n}it/s]" for n in range(100))
    assert screen().finds(bar + "\n1234567\r1234568\r\n") == []


SAMPLES = [marked(sample)[0] for samples in FOUND.values() for sample in samples]
LEARNED = [("Ann Lee", "NAME"), ("ann@example.org", "EMAIL"), ("12 Main St", "ADDRESS")]
texts = st.lists(
    st.one_of(
        st.sampled_from(SAMPLES),
        st.sampled_from([value for value, _ in LEARNED]),
        st.text(st.sampled_from("ab1 @.-+:/\\\"'%&;\n\t\x1b[é中\u200b４\r\b"), max_size=12),
    ),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("known", [(), LEARNED], ids=["nothing learned", "some learned"])
@given(text=texts)
def test_at_once_the_same_is_found_as_in_steps(known: list[tuple[str, str]], text: str) -> None:
    both = screen(*known)
    assert both.finds(text) == views.finished(both.scanning(text))


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_is_found_at_once_as_in_steps(sample: str) -> None:
    for both in (screen(), screen(*LEARNED)):
        assert both.finds(sample) == views.finished(both.scanning(sample))


def test_a_short_text_is_one_pass_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    hits = scanner._Scan.hits_of_all

    def counted(self: scanner._Scan) -> list[tuple[int, int, int]]:
        passes.append(self)
        return hits(self)

    def never(self: scanner._Scan, at: int) -> list[tuple[int, int, int]]:
        raise AssertionError("it was read in pieces")

    monkeypatch.setattr(scanner._Scan, "hits_of_all", counted)
    monkeypatch.setattr(scanner._Scan, "hits", never)
    screen(*LEARNED).finds("a line of Ann Lee at 12 High Street, number 0123456789")
    assert len(passes) == 1
