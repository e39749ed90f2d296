"""Shapes of e-mail addresses, telephone numbers and IP addresses."""

import re
from collections.abc import Callable

from divingbell.border.privacy import validators
from divingbell.border.privacy.numerals import AT, TO, gate
from divingbell.border.privacy.shape import BEGIN, Shape

_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_PASSWORD = re.compile(r"://[^\s/@:]*:[^\s/@]*$")
"""What stands before the @ of an address that has a password: the rest of it is a machine."""
_EMAIL = Shape(
    "EMAIL",
    # The one sign that all have. What stands around it is looked at afterwards.
    gate=r"[^\s@]@[^\s@]",
    pattern=re.compile(
        # A whole domain, or the beginning of one that pandas has cut.
        rf"(?<=[\w.+\"'-])@(?:(?:{_LABEL}\.){{1,8}}(?:xn--[\w-]{{1,59}}|[^\W\d_]{{2,24}})(?![\w-])"
        r"|[\w.-]{0,60}?(?:\.\.\.|…))"
    ),
    longest=330,
    check=lambda match: (
        validators.is_email_domain(match[0][1:])
        and validators.is_personal_mailbox(match.string, match.start())
        and not _PASSWORD.search(match.string, max(0, match.start() - 80), match.start())
    ),
    backwards=re.compile(r"\"[^\"\n]{1,62}\"|[\w.+-]{1,64}(?:'\w{1,2}(?!\w))?"),
)

_EXTENSION = r"(?: ?(?:x|ext\.?|#) ?\d{1,6})?"
_NORTH_AMERICAN = rf"(?:\+?1[-. ])?(?:\(\d{{3}}\) ?-?|\d{{3}}[-. ])\d{{3}}[-.]\d{{4}}{_EXTENSION}"
_NORTH_AMERICAN_SPACED = rf"(?:\(\d{{3}}\) ?|[2-9]\d{{2}} )[2-9]\d{{2}} \d{{4}}{_EXTENSION}"
_PART = r"(?:[ .\-/]|[ .\-/]?\([0-9]{1,4}\)[ .\-/]?)?\d{1,8}"
_INTERNATIONAL = rf"\+[1-9](?:{_PART}){{2,8}}{_EXTENSION}"
_WITH_ZEROS = rf"00[1-9]\d{{0,2}}(?:[ .\-/]\d{{2,8}}){{2,6}}{_EXTENSION}"
_NATIONAL = r"\(?0[1-9]\d{0,4}\)?(?:[ .\-/]\d{2,8}){1,5}"
_ANY = rf"[(+]?\d(?:[ .\-/()]{{0,2}}\d){{6,14}}{_EXTENSION}"
_PHONE_AT = r"(?:(?<![\w.(+])(?<![0-9a-fA-F]-)(?<!\d[ /,])|(?<=\\[nrt]))"
_PHONE_WORDS = (
    r"phone|mobile|mobil\b|\bcall\b|\bcalling\b|\btel\b|\btel[.:]|telefon|t[ée]l[ée]ph|fax|\bcell\b|whatsapp|\bsms\b"
    r"|\bcontact\b|\breach\b|\bdial|hotline|handy|m[óo]vil|\bring\b|answering|messages? to|registered"
    r"|\bdesk\b|\btext\b|voicemail|landline|rufnummer"
)
_PHONE_WORDS_BEHIND = r"office|fax|mobile|\bcell\b|\bdesk\b|\bhome\b|phone"


def _is_number_of(least: int, most: int) -> Callable[["re.Match[str]"], bool]:
    def check(match: "re.Match[str]") -> bool:
        number = re.split(r" ?[xe#]", match[0])[0]
        length = len(validators.digits_of(number))
        return least <= length <= most and not validators.is_date(number)

    return check


def _is_international(match: "re.Match[str]") -> bool:
    return validators.is_international(re.split(r" ?[xe#]", match[0])[0])


def _is_meant_as_phone(match: "re.Match[str]") -> bool:
    number = re.split(r" ?[xe#]", match[0])[0]
    is_one = not validators.is_date(number) and not re.fullmatch(r"\d+\.\d+|[\d.]+", number)
    is_plain = number.isdecimal()
    return (is_one or is_plain or number.count(".") > 1) and not _OTHER_NUMBER.search(
        match.string, max(0, match.start() - 24), match.start()
    )


_OTHER_NUMBER = re.compile(
    r"(?:order|invoice|tracking|ticket|account|card|ssn|\bid\b|version|ref|iban|serial|sku|part)"
    r"\W{0,3}(?:number|no|nr|num|id|is|of)?\W{0,4}$",
    re.IGNORECASE,
)
_PHONES = (
    Shape(
        "PHONE",
        gate(_NORTH_AMERICAN),
        re.compile(f"{_PHONE_AT}(?:{_NORTH_AMERICAN}){TO}"),
        longest=40,
        check=_is_number_of(10, 11),
    ),
    Shape(
        "PHONE",
        gate(_NORTH_AMERICAN_SPACED),
        re.compile(rf"{_PHONE_AT}(?:{_NORTH_AMERICAN_SPACED})(?! +\d){TO}"),
        longest=40,
    ),
    Shape(
        "PHONE",
        rf"\+[1-9](?:{_PART}){{2,8}}\b",
        re.compile(f"(?:(?<![\\w.(+])|(?<=\\\\[nrt])){_INTERNATIONAL}{TO}"),
        longest=60,
        check=_is_international,
    ),
    Shape(
        "PHONE",
        gate(_WITH_ZEROS),
        re.compile(f"{_PHONE_AT}{_WITH_ZEROS}{TO}"),
        longest=60,
        check=_is_number_of(10, 15),
    ),
    Shape(
        "PHONE",
        gate(r"\(?0[1-9]\d{0,4}\)?[ .\-/]\d{2,8}(?:[ .\-/]\d{2,8}){0,4}"),
        re.compile(f"{_PHONE_AT}{_NATIONAL}{TO}"),
        longest=60,
        check=_is_number_of(9, 12),
    ),
    Shape(
        "PHONE",
        gate(r"\d(?:[ .\-/()]{0,2}\d){6,14}"),
        re.compile(f"(?:(?<![\\w.(+])|(?<=\\\\[nrt])){_ANY}{TO}"),
        longest=60,
        check=_is_meant_as_phone,
        words=_PHONE_WORDS,
        words_behind=_PHONE_WORDS_BEHIND,
    ),
)

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_VERSION = re.compile(
    r"(?:\b(?:v|ver|version|release|rev)\W{0,2}|[A-Za-z]/|[=~<>!]=\s?)$", re.IGNORECASE
)


def _is_public(match: "re.Match[str]") -> bool:
    before = match.string[max(0, match.start() - 12) : match.start()]
    return not _VERSION.search(before) and validators.is_public_ip(match[0])


_GROUP = "[0-9a-fA-F]{1,4}"
_IPS = (
    Shape(
        "IP",
        gate(r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"),
        re.compile(rf"(?:(?<![\w.-])|(?<=\\[nrt]))(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-])(?!\.\w)"),
        longest=16,
        check=_is_public,
    ),
    Shape(
        "IP",
        rf"{BEGIN}{_GROUP}:(?:(?:{_GROUP}:){{6}}{_GROUP}\b|(?:{_GROUP}:){{0,5}}:)",
        re.compile(
            rf"(?:(?<![\w:.])|(?<=\\[nrt]))(?:{_GROUP}:){{1,7}}(?::?{_GROUP}|:)(?::{_GROUP}){{0,6}}(?![\w:])"
        ),
        longest=42,
        check=_is_public,
    ),
)

SHAPES = (_EMAIL, *_PHONES, *_IPS)
