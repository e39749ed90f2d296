"""Results and events, made again of the JSON in which a service sends them."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from divingbell.models import (
    Completion,
    Event,
    EventType,
    Failure,
    FileInfo,
    Ledger,
    Limits,
    Output,
    Result,
    ToolCall,
    ToolUse,
    Usage,
    Variable,
)
from divingbell_inside import values

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json = Mapping[str, Any]
Made = TypeVar("Made", bound="DataclassInstance")
MOST = 1 << 62
"""Items and characters of a value: what was sent has a size already."""


def result(data: Json) -> Result:
    """Return the result that `Result.to_dict` has written."""
    kind = data["value_kind"]
    value = data["value"]
    return _made(
        Result,
        data,
        value=values.decode(value, items=MOST, text=MOST) if kind == "data" else value,
        outputs=outputs(data["outputs"]),
        error=None if data["failure"] is None else _made(Failure, data["failure"]),
        usage=_made(Usage, data["usage"]),
        notes=tuple(data["notes"]),
        calls=tuple(_made(ToolCall, call) for call in data["calls"]),
        ledger=None if data["ledger"] is None else _ledger(data["ledger"]),
    )


def outputs(items: Iterable[Json]) -> tuple[Output, ...]:
    """Return the outputs that `Output.to_dict` has written."""
    return tuple(_output(item) for item in items)


def event(kind: str, data: Json, cell: int) -> Event | None:
    """Return an event of a cell; None for one that the library does not know, such as `queued`."""
    if kind == "gap":
        missed = f"{data['missed']:,} events were left out: this reader was slow"
        return Event("notice", missed, cell=cell)
    if kind not in get_args(EventType):
        return None
    ended = data.get("result")
    return _made(
        Event,
        data,
        type=kind,
        cell=cell,
        outputs=outputs(data.get("outputs", ())),
        result=None if ended is None else result(ended),
    )


def limits(data: Json) -> Limits:
    """Return the limits of a session."""
    return _made(Limits, data)


def file_info(data: Json) -> FileInfo:
    """Return a file as it was listed."""
    told = data["modified_at"]
    modified = 0.0 if told is None else datetime.fromisoformat(told).timestamp()
    return FileInfo(data["path"], data["size"], modified)


def completion(data: Json) -> Completion:
    """Return one way in which code could go on."""
    return _made(Completion, data)


def variable(data: Json) -> Variable:
    """Return the description of a variable."""
    shape = data.get("shape")
    return _made(Variable, data, shape=None if shape is None else tuple(shape))


def _output(data: Json) -> Output:
    content: str = data["data"]
    is_binary = data.get("encoding") == "base64"
    return _made(Output, data, data=base64.b64decode(content) if is_binary else content)


def _ledger(data: Json) -> Ledger:
    return _made(Ledger, data, tools=tuple(_made(ToolUse, use) for use in data["tools"]))


def _made(kind: type[Made], data: Json, /, **others: Any) -> Made:
    """Make one of the fields that it knows: a later service may send more."""
    known = {item.name: data[item.name] for item in fields(kind) if item.name in data}
    return kind(**(known | others))
