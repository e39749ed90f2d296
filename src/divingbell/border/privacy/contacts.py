"""Shapes of e-mail addresses and IP addresses."""

import re

from divingbell.border.privacy import validators
from divingbell.border.privacy.numerals import gate
from divingbell.border.privacy.shape import BEGIN, Shape

_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_PASSWORD = re.compile(r"://[^\s/@:]*:$")
"""What stands before the @ of an address that has a password: the rest of it is a machine."""
_NO_FILE = (
    r"(?!(?:txt|csv|tsv|jsonl?|xml|html?|pdf|png|jpe?g|gif|svg|xlsx?|docx?|pptx?|parquet|ya?ml|toml"
    r"|log|eml|vcf|bak|tmp|gz)(?![\w-]))"
)
"""The end of the name of a file is no part of a domain: `ann@example.org.txt`."""
_EMAIL = Shape(
    "EMAIL",
    # The one sign that all have. What stands around it is looked at afterwards.
    gate=r"[^\s@]@[^\s@]",
    expression=(
        # A whole domain, or the beginning of one that pandas has cut.
        rf"(?<=[\w.+\"'-])@(?:(?:{_LABEL}\.){{1,8}}{_NO_FILE}"
        r"(?:xn--[\w-]{1,59}|[^\W\d_]{2,24})(?![\w-])"
        r"|[\w.-]{0,60}?(?:\.\.\.|…))"
    ),
    longest=330,
    longest_gate=2,
    check=validators.is_email,
    unless=_PASSWORD,
    # Quotation marks belong to it if there is a name between them, and not the end of a text.
    backwards=re.compile(r"\"\w[\w .+-]{0,60}\"(?![\w\\])|[\w.+-]{1,64}(?:'\w{1,2}(?!\w))?"),
)

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_VERSION = re.compile(
    r"(?:\b(?:v|ver|version|release|rev|section|chapter)\W{0,2}|[a-z]/|[=~<>!]=\s?)$"
)


_GROUP = "[0-9a-fA-F]{1,4}"
_IPS = (
    Shape(
        "IP",
        # Without those of this machine and of private networks, which stand everywhere.
        gate(r"(?:[1-9]|1[1-9]|[2-9]\d|1[013-9]\d|12[0-689]|2\d\d)(?:\.\d{1,3}){3}"),
        (
            # The end of the name of a file may follow, but not more of a version.
            rf"(?:(?<![\w.-])|(?<=\\[nrt]))(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-])"
            r"(?!\.(?:\d|(?:post|dev|rc)\d))"
        ),
        longest=16,
        check=validators.is_public_ip,
        unless=_VERSION,
        unless_reach=12,
    ),
    Shape(
        "IP",
        rf"{BEGIN}{_GROUP}:(?:(?:{_GROUP}:){{6}}{_GROUP}\b|(?:{_GROUP}:){{0,5}}:)",
        (
            # A port may follow one that has all its groups: a ninth can't be one of them.
            rf"(?:(?<![\w:.])|(?<=\\[nrt]))(?:(?:{_GROUP}:){{7}}{_GROUP}(?=:\d{{1,5}}(?![\w:]))"
            rf"|(?:{_GROUP}:){{1,7}}(?::?{_GROUP}|:)(?::{_GROUP}){{0,6}}(?![\w:]))"
        ),
        longest=42,
        check=validators.is_public_ip,
        unless=_VERSION,
        unless_reach=12,
    ),
)

SHAPES = (_EMAIL, *_IPS)
