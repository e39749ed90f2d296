"""Shapes of payment cards and bank accounts."""

import re

from divingbell.border.privacy import validators
from divingbell.border.privacy.numerals import AT, TO, gate
from divingbell.border.privacy.shape import BEGIN, IS_CUT, MARK, Shape

_CARD_WORDS = (
    r"card|credit|debit|visa|master|maestro|amex|diners|discover|\bcc\b|\bpan\b|karte|carte|tarjeta"
    r"|\bccn?[_ #:]"
)
_ISSUED = (
    r"(?:4\d|5[1-5]|2[2-7]|6[0245]|35)\d{2}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}(?:[ -]?\d{1,3})?"
    r"|4\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d|(?:1800|2131)[ -]?\d{6}[ -]?\d{5}"
    r"|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|3[0689]\d{2}[ -]?\d{6}[ -]?\d{4}"
    r"|(?:0604|50(?:18|20|38)|5[678]\d{2}|63(?:04|90)|67(?:59|6[123]))[ -]?\d{4}[ -]?\d{4}"
    r"(?:[ -]?\d{4}(?:[ -]?\d{2,3})?)?"
)
_PAYING = r"\bcharged?\b|\brefund|\bpay(?:ment|ing)?\b|\bpaid\b|billing|checkout"
_PAYING_BEHIND = r"\bexp\b|\bexpir|\bcvc|\bcvv"
_ANY = r"\d(?:[ -]?\d){11,18}"
_CARDS = (
    Shape(
        "CARD",
        gate(_ISSUED),
        f"{AT}(?:{_ISSUED}){TO}",
        longest=25,
        check=validators.is_issued_card,
    ),
    Shape(
        "CARD",
        gate(_ANY),
        f"{AT}{_ANY}{TO}",
        longest=40,
        check=validators.is_card,
        words=_CARD_WORDS,
    ),
    Shape(
        "CARD",
        gate(_ANY),
        f"{AT}{_ANY}{TO}",
        longest=40,
        check=validators.is_paid_card,
        unless=re.compile(
            r"(?:invoice|order|ticket|reference|ref)\W{0,3}(?:no|nr|number|id)?\W{0,3}$"
        ),
        unless_reach=30,
        words=_PAYING,
        words_behind=_PAYING_BEHIND,
    ),
)

_CUT = (
    r"(?:4\d|5[1-5]|2[2-7]|6[0245]|35)\d{2}(?:[ -]\d{4}){0,3}[ -]\d{1,4}"
    r"|3[0-9]\d{2}(?:[ -]\d{6})?[ -]\d{1,6}|[2-6]\d{11,17}"
)
"""The beginning of a number in its groups, or enough digits to be none but a card's. No blank may
stand before the mark: an array of numpy is shown as `[4000 4001 4002 ... 4999]`."""
_CUT_BESIDE_WORDS = r"\d(?:[ -]?\d){5,17}[ -]?"
_CUT_CARDS = (
    Shape(
        "CARD",
        rf"(?:[^\w.]|\\[nrt])(?:{_CUT}){MARK}",
        f"{AT}(?:{_CUT}){IS_CUT}",
        longest=24,
        longest_gate=28,
        check=validators.begins_card,
    ),
    Shape(
        "CARD",
        rf"(?:[^\w.]|\\[nrt]){_CUT_BESIDE_WORDS}{MARK}",
        f"{AT}{_CUT_BESIDE_WORDS}{IS_CUT}",
        longest=36,
        longest_gate=40,
        check=validators.begins_card,
        words=_CARD_WORDS,
    ),
)

_IN_DIGITS = (
    "AD AE AT BA BE CZ DE DK EE ES FI FO GL HR HU IL IS LT ME NO PL PT RS SD SE SI SK TL TN XK"
)
"""Countries whose numbers go on with digits; those whose names look like the beginning of a hash
are among them."""
_OTHERS = "|".join(sorted(validators.IBAN_LENGTHS.keys() - set(_IN_DIGITS.split())))


def _of_length(length: int) -> str:
    """What follows the first letter of a number of this length."""
    countries = [c for c, its in validators.IBAN_LENGTHS.items() if its == length]
    names = "|".join(f"(?<={country[0]}){country[1]}" for country in countries)
    return rf"(?:{names})\d{{2}}(?:[ -]?[A-Z0-9]){{{length - 4}}}"


_EXACT = "|".join(map(_of_length, sorted(set(validators.IBAN_LENGTHS.values()))))
_IBAN = Shape(
    "IBAN",
    rf"{BEGIN}(?i:(?:{_IN_DIGITS.replace(' ', '|')})\d{{2}}[ -]?\d{{4}}[ -]?\d{{3}}"
    rf"|(?:{_OTHERS})\d{{2}}[ -]?[A-Z0-9]{{4}}[ -]?[A-Z0-9]{{3}})",
    # Begins with a set of characters, so that `re` skips all else.
    rf"(?i)[A-Z](?=[A-Z]\d\d)(?:(?<!\w.)|(?<=\\[nrt].))(?:{_EXACT})(?![A-Z0-9])",
    longest=66,
    longest_gate=13,
    check=validators.is_iban,
)
_BEGINS_IBAN = (
    rf"(?:(?:{_IN_DIGITS.replace(' ', '|')})\d{{2}}[ -]?\d{{4}}"
    rf"|(?:{_OTHERS})\d{{2}}[ -]?[A-Z0-9]{{4}})(?:[ -]?[A-Z0-9]){{0,28}}[ -]?"
)
"""Country, check digits and four more. In small letters it may be the beginning of a hash."""
_CUT_IBAN = Shape(
    "IBAN",
    f"{BEGIN}{_BEGINS_IBAN}{MARK}",
    rf"(?:(?<!\w)|(?<=\\[nrt])){_BEGINS_IBAN}{IS_CUT}",
    longest=66,
    longest_gate=70,
    check=validators.begins_iban,
)

SHAPES = (*_CARDS, *_CUT_CARDS, _IBAN, _CUT_IBAN)
