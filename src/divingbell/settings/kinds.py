"""The kinds of what models do not see, by the names that stand for it in texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from divingbell.settings.tables import shown

Sort = Literal["personal", "secret"]

MOST_NAME = 24
"""Characters of the name of a kind."""
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,22}[A-Z0-9]")
_BETWEEN_WORDS = re.compile(r"[ -]")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value."""

    name: str
    sort: Sort
    says: str
    """What it is, for people."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("PRIVATE_KEY", "secret", "a private key in PEM or of age"),
        Kind("API_KEY", "secret", "a key or token of a known service, a JWT, a bearer token"),
        Kind("PASSWORD", "secret", "a password in an assignment or an address"),
        Kind("IBAN", "personal", "an international bank account number"),
        Kind("CARD", "personal", "the number of a payment card"),
        Kind("SSN", "personal", "a social security number of the United States"),
        Kind("NATIONAL_ID", "personal", "an identity number of another country"),
        Kind("TAX_ID", "personal", "a tax number"),
        Kind("PASSPORT", "personal", "the number of a passport, beside that word"),
        Kind("EMAIL", "personal", "an e-mail address"),
        Kind("IP", "personal", "a public IP address"),
        Kind("PHONE", "personal", "a telephone number"),
        Kind("BIRTH_DATE", "personal", "a date of birth, beside such a word"),
        Kind("NAME", "personal", "a name that was learned"),
        Kind("ADDRESS", "personal", "an address that was learned"),
    )
}
"""All kinds, those first whose shape says most: of two that fit one text the first one counts."""

SECRETS = frozenset(kind.name for kind in KINDS.values() if kind.sort == "secret")
PERSONAL = frozenset(kind.name for kind in KINDS.values() if kind.sort == "personal")
OTHER_WORDS = {
    "PERSON": "NAME",
    "E_MAIL": "EMAIL",
    "MAIL": "EMAIL",
    "STREET": "ADDRESS",
    "CREDIT_CARD": "CARD",
    "TELEPHONE": "PHONE",
    "IP_ADDRESS": "IP",
    "BIRTHDAY": "BIRTH_DATE",
}
"""What settings may say for a kind besides its name."""
VALUE = "VALUE"
"""The kind of what is sealed because of its field, and is of no other kind. Nothing finds it by a
shape or a name, so it is none of KINDS."""
GROUPS = {"SECRETS": SECRETS, "PERSONAL": PERSONAL | {VALUE}}
"""Words for several kinds. A sealed field was named by somebody, who takes it for personal."""
NOTHING = "NONE"
"""The kind of fields that are not personal, whatever their names are."""


def is_kind(name: str) -> bool:
    """Whether this can be the kind of a token."""
    return _NAME.fullmatch(name) is not None and not name[name.rfind("_") + 1 :].isdigit()


def meant(word: Any) -> str:
    """Return the name of the kind that a word of the settings means: `person`, `e-mail`, `CARD`.

    Raises:
        ValueError: no kind can have that name.
    """
    if isinstance(word, str) and len(word) <= MOST_NAME:
        name = _BETWEEN_WORDS.sub("_", word).upper()
        if is_kind(name):
            return OTHER_WORDS.get(name, name)
    raise ValueError(
        f"{shown(word)} can't be the name of a kind: write 2 to {MOST_NAME} letters, digits and _, "
        "a letter first and no number last, such as CUSTOMER"
    )


def check_known(word: str, own: Mapping[str, Any]) -> None:
    """Raise ValueError for a kind that is neither one of all nor one of `own`."""
    if word in KINDS or word in own or word == NOTHING:
        return
    import difflib  # only mistakes need it

    known = [name.lower() for name in (*KINDS, *own)]
    words = [*known, *(name.lower() for name in OTHER_WORDS)]
    close = difflib.get_close_matches(word.lower(), words, 1)
    raise ValueError(
        f"there is no kind {word.lower()!r}"
        + (f"; did you mean {close[0]!r}? There are " if close else ": there are ")
        + f"{', '.join(known)}; another one needs an expression in patterns"
    )
