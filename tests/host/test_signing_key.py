"""Keys that sign."""

import base64

import pytest

from divingbell.host.signing_key import SigningKey, is_public_key, is_signed

KEY, OTHER = SigningKey(b"a" * 32), SigningKey(b"b" * 32)


def test_a_signature_is_of_one_key_and_of_these_bytes() -> None:
    signature = KEY.sign(b"text")
    assert is_signed(b"text", signature, KEY.public)
    assert not is_signed(b"text!", signature, KEY.public)
    assert not is_signed(b"text", signature, OTHER.public)
    assert not is_signed(b"text", OTHER.sign(b"text"), KEY.public)


@pytest.mark.parametrize("text", ["", "x", "ä", "AAAA", "A" * 88, "\0"])
def test_what_is_no_signature_and_no_key(text: str) -> None:
    assert not is_signed(b"text", text, KEY.public)
    assert not is_signed(b"text", KEY.sign(b"text"), text)
    assert not is_public_key(text)


def test_a_key_is_written_in_one_way() -> None:
    assert is_public_key(KEY.public)
    raw = base64.b64decode(KEY.public)
    last = KEY.public[-2]
    following = chr(ord(last) + 1)
    assert base64.b64decode(KEY.public[:-2] + following + "=") == raw
    assert not is_public_key(KEY.public[:-2] + following + "=")
