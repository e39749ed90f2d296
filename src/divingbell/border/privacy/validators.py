"""Small checks that say whether a text that looks like a value is one."""

import functools
import importlib
import ipaddress
import math
import re
import string
from collections import Counter
from typing import Any

FILE_ENDINGS = frozenset({
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "ts", "json", "html", "htm",
    "py", "md", "txt", "log", "service", "socket", "timer", "mount", "target", "slice", "conf",
    "yaml", "yml", "toml", "lock", "zip", "gz", "whl",
})  # fmt: skip
"""Endings of names such as logo@2x.png and getty@tty1.service, none of them a domain of the top."""
MACHINE_MAILBOXES = frozenset(("git", "hg", "svn"))
"""Users of addresses such as git@github.com:x/y.git, which are no mailboxes."""


def is_email(address: str) -> bool:
    """Say whether a person may read what is sent there. It may be cut: `ann@cust...`."""
    mailbox, _, domain = address.rpartition("@")
    if mailbox in MACHINE_MAILBOXES:
        return False
    if domain.endswith(("...", "…")):
        return domain[0] not in ".…"
    labels = domain.lower().split(".")
    is_version = labels[0].isdecimal() and labels[1].isdecimal()
    if labels[-1] in FILE_ENDINGS:
        # A file that is named after someone, or an address in Paraguay: both end in .com.py.
        return len(labels) > 2 and not is_version and _is_top(labels[-2])
    return not is_version


def _is_top(label: str) -> bool:
    """Whether a domain is likely to end so."""
    return label in _GENERIC or (len(label) == 2 and label.isalpha())


_GENERIC = frozenset(("com", "org", "net", "edu", "gov", "mil", "info", "coop", "example"))


def digits_of(text: str) -> str:
    """Return the decimal digits of a text."""
    return _NO_DIGITS.sub("", text)


_NO_DIGITS = re.compile(r"\D+")


def is_luhn(digits: str) -> bool:
    """Say whether the last digit is the one that the others ask for, as on payment cards."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[-1::-2])) + sum(map(int, doubled))) % 10 == 0


_DOUBLED = str.maketrans("0123456789", "0246813579")
"""The sum of the digits of twice each digit."""


def has_issuer(digits: str) -> bool:
    """Say whether a card with this number has been issued by a known network, in its length."""
    return any(
        len(digits) in lengths and low <= digits[: len(low)] <= high
        for low, high, lengths in _ISSUERS
    )


_ISSUERS = (
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("300", "305", (14,)),  # Diners Club
    ("36", "36", (14,)),
    ("38", "39", (14,)),
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),
    ("35", "35", (16, 19)),  # JCB, which has 3528 to 3589; others are made up for tests
    ("1800", "1800", (15,)),
    ("2131", "2131", (15,)),
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    *((first, first, (12, 16, 18, 19)) for first in (  # Maestro
        "0604", "5018", "5020", "5038", "56", "57", "58", "6304", "6390", "6759", "6761", "6762",
        "6763",
    )),
)  # fmt: skip


def is_card(number: str) -> bool:
    """Say whether a number is one of a card, where the words around it speak of one."""
    digits = digits_of(number)
    return 12 <= len(digits) <= 19 and len(set(digits)) > 1 and is_luhn(digits)


def is_paid_card(number: str) -> bool:
    """Say whether a number is one of a card where words speak of paying: Maestro is among them."""
    return is_card(number) and (number[0] in "56" or has_issuer(digits_of(number)))


def is_issued_card(number: str) -> bool:
    """Say whether a number is one of a card by itself."""
    # Cards of 13 digits are hardly given out any more, while articles of trade have so many.
    return has_issuer(digits_of(number)) and is_card(number) and not is_article(number)


FEWEST_OF_CARD = 6
"""Digits of a card that was cut: they say who has issued it."""


def begins_card(number: str) -> bool:
    """Say whether these may be the first digits of the number of a card, but not all of them."""
    digits = digits_of(number)
    return len(digits) >= FEWEST_OF_CARD and any(
        len(digits) < max(lengths) and low <= digits[: len(low)] <= high
        for low, high, lengths in _ISSUERS
    )


def is_article(number: str) -> bool:
    """Say whether a number is one of an article of trade (EAN), by its check digit."""
    if len(number) != 13 or not number.isdecimal():
        return False
    return (sum(map(int, number[::2])) + 3 * sum(map(int, number[1::2]))) % 10 == 0


def is_trunk_number(number: str) -> bool:
    """Say whether bare digits after a zero may be a telephone number: no book has that number."""
    is_book = (
        len(number) == 10
        and not sum((10 - place) * int(digit) for place, digit in enumerate(number)) % 11
    )
    return not is_book and number not in "01234567890123" and len(set(number)) > 3


def is_ssn(number: str) -> bool:
    """Say whether that is a social security number which may have been given out."""
    digits = digits_of(number)
    return len(digits) == 9 and digits[5:] != "0000" and begins_ssn(digits)


def begins_ssn(number: str) -> bool:
    """Say whether a social security number that begins so may have been given out."""
    digits = digits_of(number)
    area, group = digits[:3], digits[3:5]
    return area not in ("000", "666") and area[0] != "9" and group != "00"


IBAN_LENGTHS = {
    country: int(length)
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
        21: "CH CR HR LI LV", 22: "BG BH DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
        24: "AD CZ DZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HN HU LB PL SV", 29: "BR EG PS QA UA",
        30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
"""Characters of an account number in each country that has them."""


def is_iban(number: str) -> bool:
    """Say whether the check digits of an account number are right; it may have spaces."""
    number = number.upper().replace(" ", "").replace("-", "")
    if IBAN_LENGTHS.get(number[:2]) != len(number):
        return False
    return int((number[4:] + number[:4]).translate(_LETTERS)) % 97 == 1


def begins_iban(number: str) -> bool:
    """Say whether a number of an account may begin so, and goes on."""
    number = number.replace(" ", "").replace("-", "")
    return len(number) < IBAN_LENGTHS[number[:2]] and 2 <= int(number[2:4]) <= 98


_LETTERS = {ord(letter): str(int(letter, 36)) for letter in string.ascii_uppercase}


@functools.lru_cache(1024)
def is_public_ip(address: str) -> bool:
    """Say whether someone in the wide world may have that address: no private, no network's."""
    try:
        parsed: ipaddress.IPv4Address | ipaddress.IPv6Address = (
            ipaddress.IPv6Address(address) if ":" in address else ipaddress.IPv4Address(address)
        )
    except ValueError:
        return False
    if not parsed.is_global or parsed.is_multicast:
        return False
    if parsed.version == 4:
        return not address.endswith(".0.0")
    # A short one such as 1::2 is more likely part of a program, unless it is of those given out.
    return "::" not in address or bool(re.match("[23][0-9a-fA-F]{3}:", address))


# Whichever is the year, the month or the day stands in the middle.
_DATE = re.compile(r"\D*(\d{1,4})\D+(\d{1,2})\D+(\d{1,4})\D*")


def is_date(text: str) -> bool:
    """Say whether digits with separators can be read as a date."""
    if not (parts := _DATE.fullmatch(text)):
        return False
    first, second, third = map(int, parts.groups())
    year, month, day = (first, second, third) if first > 31 else (third, second, first)
    is_year = year < 100 or 1850 <= year <= 2100
    return is_year and 1 <= min(month, day) <= 12 and max(month, day) <= 31


_DATE_AND_HOUR = re.compile(r"(\d{1,4}([./-])\d{1,2}\2\d{2,4}) \d{1,2}")


def is_time(text: str) -> bool:
    """Say whether digits with separators can be read as a date, with an hour or without."""
    both = _DATE_AND_HOUR.fullmatch(text)
    return is_date(both[1] if both else text)


def entropy(text: str) -> float:
    """Return bits a character, from how often each comes in the text itself."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def is_random(text: str) -> bool:
    """Say whether a text may be made by chance: several kinds of signs, few of them twice."""
    kinds = sum(bool(re.search(kind, text)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]"))
    return kinds > 1 and bool(re.search(r"[\d\W]", text)) and entropy(text) >= 2.5


def is_international(number: str) -> bool:
    """Say whether a telephone number that begins with + can be one of its country."""
    return _is_international("+" + digits_of(number.replace("(0)", "")))


@functools.lru_cache(4096)
def _is_international(number: str) -> bool:
    import phonenumbers

    # To parse takes ten times as long, and is needed only where something is left out of a number.
    for size in (1, 2, 3):
        if (code := int(number[1 : 1 + size] or 0)) in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
            rest = number[1 + size :]
            if not rest.startswith("0") and rest:
                return phonenumbers.is_possible_number(phonenumbers.PhoneNumber(code, int(rest)))
            break
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return False


def has_check_digits(module: str, number: str) -> bool:
    """Say whether python-stdnum finds a number right; `module` is such as `fr.nir`."""
    checked: bool = _stdnum(module).is_valid(number)
    return checked


@functools.cache
def _stdnum(module: str) -> Any:
    return importlib.import_module(f"stdnum.{module}")
