"""Escapes of all kinds, undone; and where they stood."""

import json
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.disguises import Disguises
from divingbell.gateway.upstream.redaction import Redactor

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
    lambda sign: f"\\U{ord(sign):08x}",
    lambda sign: f"\\\\u{{{ord(sign):X}}}",
    lambda sign: f"\\{ord(sign):03o}" if sign.isascii() else sign,
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


def _said(text: str, size: int) -> list[tuple[str, list[tuple[int, int]]]]:
    """What each view of a text says, and where each character of that is."""
    found = []
    for view in Disguises("/\u00e9").views(text, size):
        said = "".join(piece for _, piece in view.pieces())
        found.append((said, list(view.located(range(len(said))))))
    return found


def test_each_character_has_its_place_in_the_text() -> None:
    text = "a%2fb&#233;\x1b[1mc"
    (with_acting, _), (said, places) = _said(text, 100)
    assert with_acting == "a/b\u00e9\x1b[1mc"
    assert said == "a/b\u00e9c"
    assert places == [(0, 1), (1, 4), (4, 5), (5, 11), (15, 16)]


PARTS = [
    *("a", "1", "%", "&", "\\", "\n", "%2f", "%25252f", "&#47", "&#47;", "&amp;#x2f;"),
    *("\\u002f", "\\U0000002f", "\\057", "\\u{2f}", "\x1b", "\x1b[0m", "\x1b]a%2fb\x07"),
]


@given(
    st.lists(st.sampled_from(PARTS)).map("".join),
    st.integers(1, 40),
)
@settings(max_examples=300, deadline=None)
def test_a_text_says_the_same_in_pieces_of_any_size(text: str, size: int) -> None:
    assert _said(text, size) == _said(text, len(text) + 1)


def test_a_text_without_escapes_has_nothing_to_undo() -> None:
    assert Disguises("/").views("100 % of a & b \\ c", 100) == []
