"""Values are found by how they are written, and what only looks like one is not."""

import html
import json
from urllib.parse import quote

import pytest

from divingbell.border.privacy.kinds import KINDS, PERSONAL, SECRETS
from divingbell.border.privacy.scanner import Scanner
from divingbell.errors import ConfigError
from tests.border.privacy.samples import FOUND, NOT_FOUND, marked

SAMPLES = [(kind, sample) for kind, samples in FOUND.items() for sample in samples]


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(KINDS)


def found(scanner: Scanner, text: str) -> list[tuple[str, str]]:
    return [(find.kind, text[find.start : find.end]) for find in scanner.finds(text)]


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_a_value_is_found_with_its_kind_and_nothing_around_it(
    scanner: Scanner, kind: str, sample: str
) -> None:
    text, value = marked(sample)
    assert found(scanner, text) == [(kind, value)]
    assert found(Scanner([kind]), text) == [(kind, value)]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_like_a_value_is_not_found(scanner: Scanner, text: str) -> None:
    assert found(scanner, text) == []


def _coloured(text: str) -> str:
    return f"{text[:3]}\x1b[1;31m{text[3:]}\x1b[0m"


def _percent(text: str) -> str:
    return quote(text, safe="").replace(".", "%2E").replace("-", "%2D")


DISGUISES = {
    "colours": _coloured,
    "JSON": lambda text: "".join(
        f"\\u{ord(sign):04x}" if sign in "@ -." else sign for sign in text
    ),
    "HTML": lambda text: "".join(f"&#{ord(sign)};" if sign in "@ -." else sign for sign in text),
    "an address": _percent,
    "a soft hyphen": lambda text: text[:4] + "\u00ad" + text[4:],
    "a zero-width space": lambda text: text[:4] + "\u200b" + text[4:],
    "full width": lambda text: "".join(chr(ord(sign) + 0xFEE0) for sign in text),
    "twice": lambda text: json.dumps(html.escape(text.replace("@", "&#64;").replace(" ", "&#32;"))),
}
DISGUISED = ("ann@example.org", "4111111111111111", "123-45-6789", "DE89370400440532013000")


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("value", DISGUISED)
def test_a_disguise_does_not_hide_a_value(scanner: Scanner, value: str, disguise: str) -> None:
    hidden = DISGUISES[disguise](value)
    text = f"it is {hidden}, they say"
    if disguise == "twice":
        text, hidden = f"it is {hidden} they say", hidden[1:-1]
    [(_, shown)] = found(scanner, text)
    # All that shows the value is in it; what only colours it may stay outside.
    assert hidden.startswith(shown) or hidden.endswith(shown) or shown in hidden
    assert len(shown) >= len(hidden) - 2 * len("\x1b[1;31m")


def test_a_typographic_dash_or_space_between_digits_hides_nothing(scanner: Scanner) -> None:
    for text in ("555\u2011123\u20114567", "4111\u00a01111\u00a01111\u00a01111"):
        assert [value for _, value in found(scanner, text)] == [text]


@pytest.mark.parametrize("value", ["4111 1111 1", "DE89 3704 0", "sk-ant-api03-a1B2c3D4"])
def test_what_a_table_has_cut_is_found_in_json_too(scanner: Scanner, value: str) -> None:
    for mark in ("...", "…"):
        assert [each for _, each in found(scanner, json.dumps(f"0  {value}{mark}"))] == [value]


def test_every_kind_is_personal_or_secret_and_has_samples() -> None:
    assert {*KINDS} == PERSONAL | SECRETS
    assert not PERSONAL & SECRETS
    assert {*FOUND} == {*KINDS} - {"NAME", "ADDRESS"}  # which are learned


def test_a_kind_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="There is no kind 'MAIL'"):
        Scanner(["MAIL"])


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"kind PHONE .*divingbell\[privacy\]"):
        Scanner(["EMAIL", "PHONE"])
    assert Scanner([*SECRETS, "EMAIL"]).finds("ann@example.org")  # which need no extra


def test_only_the_kinds_that_are_asked_for_are_found() -> None:
    text = "ann@example.org password=Tr0ub4dor3"
    assert found(Scanner(SECRETS), text) == [("PASSWORD", "Tr0ub4dor3")]
    assert found(Scanner(()), text) == []


def test_patterns_of_ones_own_are_found_by_their_name() -> None:
    own = Scanner(
        ["EMAIL"], patterns={"EMPLOYEE": r"EMP-\d{6}", "STREET": "Straße des [A-Z][a-z]+"}
    )
    text = "é EMP-123456 ann@example.org Straße des Friedens EMP\u200b-123456"
    assert found(own, text) == [
        ("EMPLOYEE", "EMP-123456"),
        ("EMAIL", "ann@example.org"),
        ("STREET", "Straße des Friedens"),
        ("EMPLOYEE", "EMP\u200b-123456"),
    ]


@pytest.mark.parametrize("expression", ["(?<=a)b", r"(a)\1", "(", ""])
def test_a_pattern_that_no_engine_can_run_is_refused(expression: str) -> None:
    with pytest.raises(ConfigError, match="Write it without look-around"):
        Scanner((), patterns={"OWN": expression})
