"""A value of each kind, and the search for them in the bytes that a server has sent."""

import base64
import html
import json
import math
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from ahocorasick_rs import BytesAhoCorasick

from divingbell.border.vault import tokens
from divingbell.settings.kinds import PERSONAL, SECRETS

_PEM_LINES = (
    "MC4CAQAwBQYDK2VwBCIEIJ7mQ1vT0xk3bq4Wc8Rz",
    "Yl5nP2sUe9DhGo6KfAiXtLwBVuMjHrNyCdSaEpOq",
    "IgFzTkZx7W3J0vQbR8mLcYn4P1s",
)
PEM = "\n".join(("-----BEGIN PRIVATE KEY-----", *_PEM_LINES, "-----END PRIVATE KEY-----"))
VALUES = {
    "PRIVATE_KEY": PEM,
    "API_KEY": "sk-proj-Tq8vXz2Lm4Rw9Kp3Hs7Yd1Fg6Jc5Nb0VaQeUiOtP",
    "PASSWORD": "Kestrel7!quiet",
    "IBAN": "DE75512108001245126199",
    "CARD": "4539 1488 0343 6467",
    "SSN": "536-22-8714",
    "NATIONAL_ID": "756.9217.0769.85",
    "TAX_ID": "36574261809",
    "PASSPORT": "C01X00T47",
    "EMAIL": "tilda.brock@harborlight.io",
    "IP": "81.2.69.142",
    "PHONE": "+49 30 9018 2745",
    "BIRTH_DATE": "1985-03-12",
    "NAME": "Zelmira Quästenfloß",
    "ADDRESS": "Ünterer Graben 171",
}
FIRST_NAME = "Wilhelmina"
"""A further name: one that can be that of a session."""
PEOPLE = [{"full_name": VALUES["NAME"], "street": VALUES["ADDRESS"], "first_name": FIRST_NAME}]
_AROUND = {
    "PASSWORD": 'db_password = "{}"',
    "TAX_ID": "Steuer-ID {}",
    "PASSPORT": "passport no. {}",
    "BIRTH_DATE": "born on {}",
}
TEXTS = {kind: _AROUND.get(kind, "see {}").format(value) for kind, value in VALUES.items()}
"""Each value in such words as its kind needs."""
LEAST = 6
SHARE = 0.6
"""Of a value that was cut, so much is too much."""


class Search:
    """Finds what of the values of some kinds is in bytes, in whichever writing."""

    def __init__(self, kinds: frozenset[str]) -> None:
        values = {kind: [VALUES[kind]] for kind in kinds}
        if "PRIVATE_KEY" in kinds:
            values["PRIVATE_KEY"] = list(_PEM_LINES)
        if "NAME" in kinds:
            values["NAME"].append(FIRST_NAME)
        forms_of = {
            form.lower(): kind
            for kind, own in values.items()
            for value in own
            for form in forms(value)
        }
        self._kinds = list(forms_of.values())
        self._automaton = BytesAhoCorasick(list(forms_of))

    def __call__(self, data: bytes) -> dict[str, bytes]:
        """Return the kinds that are there, each with what stands around one of its finds."""
        return {
            self._kinds[index]: data[max(0, start - 150) : end + 60]
            for index, start, end in self._automaton.find_matches_as_indexes(data.lower())
        }


def forms(value: str) -> Iterator[bytes]:
    """Yield the writings of a value, and of most of it."""
    size = max(LEAST, math.ceil(len(value) * SHARE))
    for part in {value[:size], value[-size:]}:
        written = {
            *(part, json.dumps(part)[1:-1], html.escape(part), ascii(part)[1:-1]),
            *(quote(part), quote(part, safe=""), quote_plus(part)),
        }
        written |= {json.dumps(each)[1:-1] for each in written}
        yield from (each.encode() for each in written)
    for data in (value.encode(), value.encode("utf-16-le"), value.encode("utf-16-be")):
        yield from (_in_base64(data, shift) for shift in range(3))


def _in_base64(data: bytes, shift: int) -> bytes:
    """The part of base64 that is the same whatever stands around these bytes."""
    encoded = base64.b64encode(bytes(shift) + data)
    end = len(encoded) - (4 if (shift + len(data)) % 3 else 0)
    return encoded[(shift and 4) : end]


def kinds_in(said: Any) -> set[str]:
    """Return the kinds of the tokens in something that was said; what is base64 is read."""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    for encoded in re.findall(r"[A-Za-z0-9+/]{80,}={0,2}", text):
        text += base64.b64decode(encoded + "==").decode("utf-8", "replace")
    text = re.sub(r"%5B(\w+)%5D", r"[\1]", text)
    return {found[1] for found in tokens.TOKEN.finditer(text)}


def tokens_in(said: Any) -> dict[str, str]:
    """Return a token of each kind in something that was said."""
    return {found[1]: found[0] for found in tokens.TOKEN.finditer(json.dumps(said))}


ALL, ONLY_SECRETS, ONLY_PERSONAL = map(Search, (SECRETS | PERSONAL, SECRETS, PERSONAL))
