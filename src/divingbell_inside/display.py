"""Rich display: what IPython would show, as parts with a MIME type."""

import base64
import binascii
import json
import sys
from typing import Any

from divingbell_inside import frames

MAX_TEXT = 1 << 18
MAX_PARTS = 16
MAX_VALUE_DEPTH = 20
MAX_VALUE_ITEMS = 20_000
MAX_VALUE_TEXT = 1 << 18
_PLAIN = (int, float, bool, str, type(None))


class NotPlain(Exception):
    """The value is not plain data."""


def parts_of(bundle: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Turn a MIME bundle of IPython's into parts; images become bytes, long text is cut."""
    parts: list[tuple[str, bytes]] = []
    has_image = any(str(kind).startswith("image/") for kind in bundle)
    for kind, data in list(bundle.items())[:MAX_PARTS]:
        kind = str(kind).partition(";")[0].strip()
        if kind == "text/plain" and has_image and str(data).startswith("<"):
            continue  # "<Figure size 640x480 with 1 Axes>" says less than the picture beside it
        raw = _raw(kind, data)
        if sum(len(other) for _, other in parts) + len(raw) > frames.MAX_BODY // 2:
            kind, raw = "text/plain", f"[{kind} of {len(raw)} bytes: too large to show]".encode()
        parts.append((kind[:200], raw))
    return parts


def _raw(kind: str, data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if kind.startswith("image/") and kind != "image/svg+xml" and isinstance(data, str):
        try:
            return base64.b64decode(data, validate=False)
        except binascii.Error:
            return data.encode("utf-8", "backslashreplace")
    text = data if isinstance(data, str) else json.dumps(data, default=repr)
    if kind.startswith("text/"):
        text = cut(text)
    return text.encode("utf-8", "backslashreplace")


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """Shorten text that is far too long, and say so in the text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def pack_display(
    parts: list[tuple[str, bytes]], **more: str | bool | None
) -> tuple[frames.Header, bytes]:
    """Return header and body of a display event."""
    header: frames.Header = {
        "event": "display",
        "parts": [[kind, len(raw)] for kind, raw in parts],
        **{key: value for key, value in more.items() if value is not None},
    }
    return header, b"".join(raw for _, raw in parts)


def plain(value: Any) -> Any:
    """Return the value as plain JSON data.

    Raises:
        NotPlain: it is something else, too large or too deep; its text must do.
    """
    budget = [MAX_VALUE_ITEMS, MAX_VALUE_TEXT]
    return _plain(value, 0, budget)


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0 or depth > MAX_VALUE_DEPTH:
        raise NotPlain
    kind = type(value)
    if kind is str:
        budget[1] -= len(value)
        if budget[1] < 0:
            raise NotPlain
        return value.encode("utf-8", "backslashreplace").decode()
    if kind is int and value.bit_length() > 4096:
        raise NotPlain
    if kind is float and value - value != 0:  # infinite or not a number: not JSON
        raise NotPlain
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        return [_plain(item, depth + 1, budget) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {
            _plain(key, depth, budget): _plain(item, depth + 1, budget)
            for key, item in value.items()
        }
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        item = value.item()
        if type(item) in _PLAIN:
            return _plain(item, depth + 1, budget)
    raise NotPlain
