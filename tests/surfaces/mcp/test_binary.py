"""Base64 in messages: read where it is text, wherever it stands, and held back where it is not."""

import base64
from typing import Any

import pytest

from divingbell.border import binary

TEXT = "für ann@example.org\n" * 9


def written(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "encoded",
    [
        written(TEXT.encode()),
        base64.encodebytes(TEXT.encode()).decode(),
        base64.urlsafe_b64encode(TEXT.encode()).decode().rstrip("="),
    ],
    ids=["plain", "in lines", "for addresses"],
)
def test_text_is_taken_out_wherever_it_stands_and_put_back(encoded: str) -> None:
    blob = {"uri": "a://b", "blob": encoded}
    message: Any = {"messages": [{"content": {"type": "resource", "resource": blob}}]}
    apart = binary.taken_out(message)
    assert apart["messages"][0]["content"]["resource"]["blob"] == TEXT.encode()
    back = binary.put_back(apart, is_held=lambda _: True)
    assert back["messages"][0]["content"]["resource"]["blob"] == written(TEXT.encode())


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": written(b"\x89PNG\xff"), "mimeType": "image/png"},
        {"type": "image", "data": written(b"<svg/>"), "mimeType": "image/svg+xml"},
        {"type": "audio", "data": written(b"\xff\0"), "mimeType": "audio/wav"},
        {"uri": "a://b", "blob": written(TEXT.encode("utf-16"))},
        {"uri": "a://b", "blob": "!" + written(TEXT.encode())},
        {"$bytes": written(b"\xff" + TEXT.encode())},
    ],
)
def test_what_can_not_be_read_is_held_back_or_stays_as_it_is(block: dict[str, str]) -> None:
    apart = binary.taken_out([{"inner": block}])
    assert "is held back" in str(binary.put_back(apart, is_held=lambda _: True))
    assert binary.put_back(apart, is_held=binary.held_never) == [{"inner": block}]


def test_names_alone_make_no_base64() -> None:
    data = {"blob": "c0ffee", "data": "abcd", "type": "table", "rows": [{"uri": "a://b"}]}
    assert binary.put_back(binary.taken_out(data), is_held=lambda _: True) == data
