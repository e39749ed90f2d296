"""Plain data, written as JSON that says what each value is, and read again exactly as it was.

Ordinary JSON stands for itself. Everything else is an object with one key that begins with `$`:
`{"$date": "2026-11-17"}`, `{"$set": [1, 2]}`. Host and inside share this. Only exact types
are taken: a subclass may hold more than the text or number that it looks like. What is read may
come from hostile code, so every step of reading is bounded, and nothing is guessed.
"""

import json
from typing import Any

from divingbell_inside import frames
from divingbell_inside.value_reader import Reader
from divingbell_inside.value_rules import MAX_ITEMS, MAX_TEXT, InvalidData, NotPlain, TooLarge
from divingbell_inside.value_writer import Writer

__all__ = [
    "MAX_ITEMS",
    "MAX_TEXT",
    "InvalidData",
    "NotPlain",
    "TooLarge",
    "decode",
    "encode",
    "from_json",
    "to_json",
]

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_json(value: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> bytes:
    """Return plain data as JSON in UTF-8.

    Raises:
        NotPlain: see `encode`.
    """
    return _JSON.encode(encode(value, items=items, text=text)).encode()


def from_json(raw: bytes, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return the value that `to_json` has written. Weigh what is hostile before.

    Raises:
        InvalidData: it is anything else.
    """
    try:
        data = frames.STRICT.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"it is not strict JSON: {error}") from None
    return decode(data, items=items, text=text)


def encode(value: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return plain data in its JSON form: made of dict, list, str, int, float, bool and None.

    Raises:
        NotPlain: something in it is of another type, or is nested too deeply.
        TooLarge: it has more than so many items, or more than so many characters of text.
    """
    try:
        return Writer(items, text).write(value, 0)
    except RecursionError:
        raise NotPlain("is nested too deeply") from None


def decode(data: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return the value of a JSON form.

    Raises:
        InvalidData: it is not the form of any value, or of one that is too large.
    """
    try:
        return Reader(items, text).read(data, 0)
    except RecursionError:
        raise InvalidData("it is nested too deeply") from None
