"""Escapes of all kinds, undone; and where they stood."""

import json
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.gateway.disguises import Disguises
from divingbell.gateway.redaction import Redactor

SECRET = 'kéy/"+&<\U0001f511 end'


def _percent(sign: str) -> str:
    return "".join(f"%{byte:02x}" for byte in sign.encode())


ESCAPES: list[Callable[[str], str]] = [
    lambda sign: sign,
    _percent,
    lambda sign: _percent(sign).upper(),
    lambda sign: quote(_percent(sign), safe=""),
    lambda sign: json.dumps(sign)[1:-1] if not sign.isascii() else f"\\u{ord(sign):04x}",
    lambda sign: f"&#{ord(sign)};",
    lambda sign: f"&#X{ord(sign):06X};",
    lambda sign: f"&amp;#{ord(sign)};",
]


@given(
    st.lists(st.sampled_from(ESCAPES), min_size=len(SECRET), max_size=len(SECRET)),
    st.sampled_from(["", "before ", "%2f \\/ &lt; ", "é%"]),
    st.sampled_from(["", " after", " %2f \\u002f&amp;", ";"]),
)
@settings(max_examples=300, deadline=None)
def test_a_secret_is_found_whichever_escape_each_of_its_characters_has(
    escapes: list[Callable[[str], str]], before: str, after: str
) -> None:
    said = "".join(escape(sign) for escape, sign in zip(escapes, SECRET, strict=True))
    cleaned = Redactor([SECRET], "bank").clean(f"{before}{said}{after}")
    assert cleaned == f"{before}[secret of bank]{after}"


def test_each_character_has_its_place_in_the_text() -> None:
    disguises, text = Disguises("/é"), "a%2fb&#233;\x1b[1mc"
    assert disguises.undone(text) == "a/béc"
    assert list(disguises.located(text, range(5))) == [(0, 1), (1, 4), (4, 5), (5, 11), (15, 16)]


def test_a_text_without_escapes_has_nothing_to_undo() -> None:
    assert Disguises("/").undone("100 % of a & b \\ c") is None
