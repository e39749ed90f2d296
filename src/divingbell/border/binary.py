"""Binary content of answers: images, sounds and files, which come as base64.

A border reads texts. What is text in truth is read as such; the rest can't be read, and is given as
it is or held back.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

HELD_BACK = (
    "[{kind} of {size:,} bytes is held back: with `privacy` set to personal, what can't be read as "
    "text is not shown]"
)
_LISTS = frozenset(("content", "contents"))

Place = tuple[str, int]
"""The name of a list in an answer, and where in it."""


def taken_out(answer: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Place, bytes | None]]:
    """Return an answer with texts or nothing in the places of base64, and what was there.

    For what is text in truth that is None: it is read, and written as base64 again.
    """
    apart = dict(answer)
    kept: dict[Place, bytes | None] = {}
    for name in _LISTS:
        blocks = answer.get(name)
        if isinstance(blocks, list):
            apart[name] = [_read(block, (name, place), kept) for place, block in enumerate(blocks)]
    return apart, kept


def put_back(
    answer: dict[str, Any], kept: Mapping[Place, bytes | None], *, is_held: bool
) -> dict[str, Any]:
    """Return an answer with what was taken out of it; where it is held, with a word on that."""
    if not kept:
        return answer
    whole = {name: list(answer[name]) for name in _LISTS if name in answer}
    for (name, place), data in kept.items():
        whole[name][place] = _written(whole[name][place], data, is_held)
    return answer | whole


def texts_taken_out(result: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a result for code with texts in the places of base64, and what puts base64 there
    again. What is no text stays what it was."""
    if isinstance(result, Mapping):
        apart, kept = taken_out(result)
        return apart, lambda changed: put_back(changed, kept, is_held=False)
    if not isinstance(result, list):
        return result, lambda changed: changed
    if not all(isinstance(each, dict) and _LISTS & each.keys() for each in result):
        # The contents of a resource.
        inner, put_inner = texts_taken_out({"contents": result})
        return inner["contents"], lambda changed: put_inner({"contents": changed})["contents"]
    pairs = [texts_taken_out(each) for each in result]
    return [each for each, _ in pairs], lambda changed: [
        put(each) for each, (_, put) in zip(changed, pairs, strict=True)
    ]


def _field_of(block: Any) -> tuple[dict[str, Any], str] | None:
    """The part of a block that has base64 in it, and the name of the field."""
    if not isinstance(block, dict):
        return None
    if isinstance(resource := block.get("resource"), dict):
        block = resource
    if block.get("type") in ("image", "audio") and isinstance(block.get("data"), str):
        return block, "data"
    return (block, "blob") if isinstance(block.get("blob"), str) else None


def _with(block: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    return block | {"resource": part} if isinstance(block.get("resource"), dict) else part


def _read(block: Any, place: Place, kept: dict[Place, bytes | None]) -> Any:
    found = _field_of(block)
    if found is None:
        return block
    part, field = found
    try:
        data = base64.b64decode(part[field], validate=True)
    except (binascii.Error, ValueError):
        return block  # then it is no base64, but some text
    text = _text(data)
    kept[place] = None if text is not None else data
    return _with(block, part | {field: text or ""})


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _written(block: dict[str, Any], data: bytes | None, is_held: bool) -> dict[str, Any]:
    found = _field_of(block)
    assert found is not None
    part, field = found
    if data is not None and is_held:
        words = HELD_BACK.format(kind=part.get("mimeType", "a file"), size=len(data))
        if field == "data":
            return {"type": "text", "text": words}
        uri = {"uri": part["uri"]} if "uri" in part else {}
        return _with(block, uri | {"mimeType": "text/plain", "text": words})
    content = part[field].encode() if data is None else data
    return _with(block, part | {field: base64.b64encode(content).decode()})
