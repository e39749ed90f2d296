"""Each check, right and wrong."""

from collections.abc import Callable

import pytest

from divingbell.border.privacy import validators

RIGHT: dict[Callable[[str], bool], tuple[str, ...]] = {
    validators.is_email: ("ann@example.org", "a@b.co", "ann@cust...", "ann@custo…", "git2@x.org"),
    validators.is_luhn: ("79927398713", "4111111111111111", "0"),
    validators.has_issuer: ("4111111111111111", "378282246310005", "2221000000000009"),
    validators.is_card: ("4111 1111 1111 1111", "630427373398"),
    validators.is_issued_card: ("4111-1111-1111-1111", "4222222222222", "630427373398"),
    validators.is_article: ("4006381333931",),
    validators.is_trunk_number: ("0612345679", "07700900123"),
    validators.is_ssn: ("123-45-6789", "001010001", "899-99-9999"),
    validators.is_iban: ("DE89 3704 0044 0532 0130 00", "gb82west12345698765432"),
    validators.is_public_ip: ("8.8.8.8", "2606:4700::1111", "6e40:1:2:3:4:5:6:7"),
    validators.is_date: ("2026-11-17", "17.11.2026", "11/17/26", "31-12-99"),
    validators.is_random: ("Tr0ub4dor&3", "a8f5f167f44f4964"),
    validators.is_international: ("+49 151 12345678", "+46 (0)8 928 571 38", "+1-984-182-0190"),
}
WRONG: dict[Callable[[str], bool], tuple[str, ...]] = {
    validators.is_email: ("git@github.com", "logo@2x.png", "x@1.2.3", "x@...", "x@…"),
    validators.is_luhn: ("79927398710", "4111111111111112"),
    validators.has_issuer: ("1700000000000", "41111111111111", "9111111111111111"),
    validators.is_card: ("4111 1111 1111 1112", "0000000000000000", "42"),
    validators.is_issued_card: ("675868344978", "630427373399", "4622463907656"),
    validators.is_article: ("4006381333932", "4111111111111111", "12"),
    validators.is_trunk_number: ("0306406152", "0123456789", "0100000000"),
    validators.is_ssn: ("000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "12345678"),
    validators.is_iban: ("DE88370400440532013000", "DE8937040044053201300", "XX00", ""),
    validators.is_public_ip: ("127.0.0.1", "10.0.0.1", "224.0.0.1", "1.0.0.0", "::1", "1::2", "x"),
    validators.is_date: ("2026-13-32", "1-2", "555-123-4567", "12345-1-1", "2026-11-17-1"),
    validators.is_random: ("password", "aaaaaaaa1", "identifier_name"),
    validators.is_international: ("+1 2", "+999 123456789", "+12345678901234567890"),
}


@pytest.mark.parametrize(("check", "text"), [(c, text) for c in RIGHT for text in RIGHT[c]])
def test_it_says_yes(check: Callable[[str], bool], text: str) -> None:
    assert check(text)


@pytest.mark.parametrize(("check", "text"), [(c, text) for c in WRONG for text in WRONG[c]])
def test_it_says_no(check: Callable[[str], bool], text: str) -> None:
    assert not check(text)


def test_check_digits_are_those_of_the_country() -> None:
    assert validators.has_check_digits("fr.nir", "2 95 10 99 126 111 93")
    assert not validators.has_check_digits("fr.nir", "2 95 10 99 126 111 94")


def test_entropy_is_in_bits_a_character() -> None:
    assert validators.entropy("aaaa") == 0
    assert validators.entropy("abcd") == 2


def test_digits_are_those_of_the_text() -> None:
    assert validators.digits_of("+1 (23) 4-5") == "12345"
