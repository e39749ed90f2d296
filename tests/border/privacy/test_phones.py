"""Telephone numbers beside words: the whole of one, or nothing of it."""

import pytest

from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.scanner import Scanner
from tests.border.privacy.samples import FOUND, marked

NUMBERS = {
    *(marked(sample)[1] for sample in FOUND["PHONE"]),
    *("(020) 7946 0958", "+1 (555) 123-4567", "(11) 91234-5678", "1 555 123 4567", "12 345 67 89"),
}
PLACES = (
    "Phone orders, ref: {}",
    "Phone, order no. {}",
    "phone id {0}, {0}",
    "call the office, ticket {} or fax",
    "account {} fax",
    "mobile Safari/{}",
    "12 {} x",
    "phone 5-{}",
    '"phone": {{"id": "{}"}}',
    "phone {} over the phone",
    '"{}": 5 phone',
    "ann@example.org, ref: {}",
    "{}, ann@example.org",
    "phone {0} / {0}",
    "phone {0}/{0}",
)


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(KINDS)


@pytest.mark.parametrize("place", PLACES)
def test_no_part_of_a_number_is_hidden_alone(scanner: Scanner, place: str) -> None:
    for number in sorted(NUMBERS):
        text = place.format(number)
        covered = {at for find in scanner.finds(text) for at in range(find.start, find.end)}
        start = text.find(number)
        while start >= 0:
            digits = {at for at in range(start, start + len(number)) if text[at].isdecimal()}
            assert not digits & covered or digits <= covered, text
            start = text.find(number, start + len(number))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Phone orders, ref: (555) 123-4567", ["(555) 123-4567"]),
        ("phone 67 123 456/67 123 457", ["67 123 456", "67 123 457"]),
        ("Telefon 030 1234567/68", ["030 1234567/68"]),
        ("Telefon Ref: 5551234567", []),
    ],
)
def test_a_number_is_found_whole(scanner: Scanner, text: str, wanted: list[str]) -> None:
    assert [text[find.start : find.end] for find in scanner.finds(text)] == wanted
