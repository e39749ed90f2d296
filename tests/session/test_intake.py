"""The intake: marks and text that are cut anywhere, and fields that are not what they should be.

What it does on a line is in test_tether.
"""

import pytest

from divingbell.session.intake import TextDecoder, _possible_mark, field_of


@pytest.mark.parametrize(
    ("text", "held"),
    [(b"", 0), (b"abc", 0), (b"abcM", 1), (b"abcMA", 2), (b"MARK", 4), (b"xMARK12", 6), (b"MM", 1)],
)
def test_how_much_of_the_end_may_be_a_mark(text: bytes, held: int) -> None:
    assert _possible_mark(text, b"MARK", 8) == held


def test_text_is_decoded_across_cuts() -> None:
    decoder = TextDecoder()
    raw = "grüße".encode()
    assert "".join(decoder.feed(bytes([byte])) for byte in raw) == "grüße"
    assert decoder.feed(b"\xe2\x82") == ""
    assert decoder.feed(b"", last=True) == "\ufffd"


def test_a_field_of_another_kind_counts_as_missing() -> None:
    header = {"id": True, "name": "a", "items": None}
    assert field_of(header, "id", int) is None
    assert field_of(header, "name", str) == "a"
    assert field_of(header, "items", list, []) == []
    assert field_of(header, "gone", str, "?") == "?"
