"""Binary content of messages: images, sounds and files, which come as base64.

A border reads texts, and bytes that are text. So base64 is decoded before it passes, wherever it
stands in a message, and written again afterwards. What can't be read stays as it is or is held
back.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

HELD_BACK = (
    "[{kind} of {size:,} bytes is held back: with `privacy` set to personal, what can't be read as "
    "text is not shown]"
)
_BLOCKS = ("image", "audio", "base64")
_VALUE = "$bytes"
"""The name of bytes among the values of code, as `divingbell_inside.values` writes them."""
_DRAWN = "image/svg+xml"
"""Text whose letters may stand in any order."""
# In lines, without its last signs, or as addresses have it: clients read these too.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]*[=\s]*")
_SPACES = re.compile(r"[=\s]+")
_FOR_ADDRESSES = str.maketrans("+/", "-_")
_FIELDS = frozenset({"data", "blob", _VALUE})
_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Told at once: to ask whether something is a mapping takes four times as long."""


def may_be_among(texts: Iterable[str]) -> bool:
    """Whether JSON may have base64 in it that has these texts, the names of its fields among them.
    A walk of its own would take as long as a look at them all."""
    return not _FIELDS.isdisjoint(texts)


def taken_out(value: Any) -> Any:
    """Return JSON with bytes in the places of base64."""
    if isinstance(value, list):
        return [taken_out(each) for each in value]
    if value.__class__ in _PLAIN or not isinstance(value, Mapping):
        return value
    field = _field_of(value)
    taken = {name: each if name == field else taken_out(each) for name, each in value.items()}
    if field is not None and isinstance(text := taken[field], str) and _BASE64.fullmatch(text):
        taken[field] = _decoded(text)
    return taken


def held_never(content: bytes) -> bool:
    """Hold nothing back, whatever it is."""
    return False


def put_back(value: Any, *, is_held: Callable[[bytes], bool]) -> Any:
    """Return the same with base64 again; where it is held, with words for what can't be read."""
    if isinstance(value, list):
        return [put_back(each, is_held=is_held) for each in value]
    if value.__class__ in _PLAIN or not isinstance(value, Mapping):
        return value
    field = _field_of(value)
    if field is None:
        return {name: put_back(each, is_held=is_held) for name, each in value.items()}
    content = value[field]
    if not _is_readable(value, content) and is_held(_bytes_of(content)):
        return _held_back(value, field)
    if isinstance(content, bytes):
        return {**value, field: base64.b64encode(content).decode()}
    return dict(value)


def _field_of(block: Mapping[str, Any]) -> str | None:
    """The name of the field that has base64 in it."""
    if block.get("type") in _BLOCKS:
        field = "data"
    elif "uri" in block:
        field = "blob"
    else:
        field = _VALUE if len(block) == 1 else ""
    return field if isinstance(block.get(field), str | bytes) else None


def _decoded(text: str) -> bytes:
    signs = _SPACES.sub("", text)
    whole = len(signs) - (len(signs) % 4 == 1)  # a single sign says nothing
    return base64.urlsafe_b64decode(signs[:whole].translate(_FOR_ADDRESSES) + "==")


def _is_readable(block: Mapping[str, Any], content: str | bytes) -> bool:
    """Whether the border has read it all. What is no base64 may be, for some clients."""
    if isinstance(content, str) or b"\0" in content or block.get("mimeType") == _DRAWN:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bytes_of(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")


def _held_back(block: Mapping[str, Any], field: str) -> Any:
    kind = block.get("mimeType", "a file" if field == "blob" else "data")
    words = HELD_BACK.format(kind=kind, size=len(block[field]))
    if field == _VALUE:
        return words
    if field == "data":
        return {"type": "text", "text": words}
    return {"uri": block["uri"], "mimeType": "text/plain", "text": words}
