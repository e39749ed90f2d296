"""The kinds of what is found, by the names that stand for it in texts."""

from dataclasses import dataclass
from typing import Literal

Sort = Literal["personal", "secret"]


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
_RANKS = {name: rank for rank, name in enumerate(KINDS)}


def rank(name: str) -> int:
    """Return the place of a kind among all. Those of the settings come first: they were meant."""
    return _RANKS.get(name, -1)
