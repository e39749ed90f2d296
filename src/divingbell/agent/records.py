"""Entries of a conversation as JSON, for those who write them down."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from divingbell.agent.code_tool import NAME as EXECUTE
from divingbell.agent.code_tool import code_so_far
from divingbell.agent.history import Answered, Asked, Call, Entry, Image, Replied
from divingbell.models import Status


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell as the person has seen it, images too, whether or not the model sees any."""

    code: str
    text: str
    status: Status = "ok"
    images: tuple[Image, ...] = ()


Record = Entry | ShownCell
_STATUSES = frozenset(get_args(Status))


def as_data(record: Record) -> dict[str, Any]:
    """Return a record as data that JSON can hold."""
    if isinstance(record, Asked):
        return {"asked": record.text, "images": _images(record.images)}
    if isinstance(record, Replied):
        calls = [_call(call) for call in record.calls]
        said = {"replied": record.text, "calls": calls, "thinking": record.thinking}
        return {**said, "native": record.native}
    if isinstance(record, Answered):
        call = _call(record.call)
        return {"answered": record.text, "call": call, "images": _images(record.images)}
    shown = {"cell": record.code, "text": record.text, "status": record.status}
    return {**shown, "images": _images(record.images)}


def from_data(data: dict[str, Any]) -> Record | None:
    """Return the record that data stands for; None where it is something else.

    Raises:
        ValueError: it is damaged.
    """
    try:
        if "asked" in data:
            return Asked(_text(data["asked"]), _images_of(data["images"]))
        if "replied" in data:
            calls = tuple(map(_call_of, data["calls"]))
            thinking = _text(data["thinking"])
            return Replied(_text(data["replied"]), calls, thinking, data["native"])
        if "answered" in data:
            images = _images_of(data["images"])
            return Answered(_call_of(data["call"]), _text(data["answered"]), images)
        if "cell" in data:
            return _cell_of(data)
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"a record is damaged: {error}") from error
    return None


def _cell_of(data: dict[str, Any]) -> ShownCell:
    status = data["status"]
    if status not in _STATUSES:
        raise ValueError("a cell has ended in no way that is known")
    images = _images_of(data["images"])
    return ShownCell(_text(data["cell"]), _text(data["text"]), status, images)


def _call(call: Call) -> list[str]:
    return [call.id, call.name, call.arguments]


def _call_of(data: Any) -> Call:
    identifier, name, arguments = map(_text, data)
    return Call(identifier, name, arguments)


def _images(images: tuple[Image, ...]) -> list[list[str]]:
    return [[image.type, base64.b64encode(image.data).decode()] for image in images]


def _images_of(data: Any) -> tuple[Image, ...]:
    return tuple(
        Image(_text(kind), base64.b64decode(_text(content), validate=True))
        for kind, content in data
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is none")
    return value


async def screened(record: Record, screen: Callable[[list[str]], Awaitable[list[str]]]) -> Record:
    """Return a record with its texts changed, in the order in which `texts_of` has them.

    What a provider wants back has the same texts once more: it is left out where one was changed.
    """
    before = texts_of(record)
    after = await screen(before)
    if after == before:
        return record
    if isinstance(record, Replied):
        text, thinking, *arguments = after
        pairs = zip(record.calls, arguments, strict=True)
        calls = tuple(replace(call, arguments=each) for call, each in pairs)
        return Replied(text, calls, thinking)
    if isinstance(record, Answered):
        text, arguments_of_call = after
        return replace(record, text=text, call=replace(record.call, arguments=arguments_of_call))
    if isinstance(record, Asked):
        return replace(record, text=after[0])
    return replace(record, code=after[0], text=after[1])


def texts_of(record: Record) -> list[str]:
    """Return all in a record that a person, a model or code has written."""
    if isinstance(record, Replied):
        return [record.text, record.thinking, *(call.arguments for call in record.calls)]
    if isinstance(record, Answered):
        return [record.text, record.call.arguments]
    return [record.text] if isinstance(record, Asked) else [record.code, record.text]


def cells_in(entries: Sequence[Entry], shown: Mapping[int, ShownCell]) -> dict[int, ShownCell]:
    """Return all cells by the place of the entry that has their output: those that were shown to
    their end, and of others the code and what the model has read."""
    found = dict(shown)
    for place, entry in enumerate(entries):
        if place not in found and isinstance(entry, Answered) and entry.call.name == EXECUTE:
            code = code_so_far(entry.call.arguments)
            if code is not None:
                found[place] = ShownCell(code, entry.text, "cancelled", entry.images)
    return {place: found[place] for place in sorted(found)}
