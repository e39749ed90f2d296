"""The forms in which results, events and descriptions travel on the line.

A form is JSON and raw bytes behind it: images stand there and not in the text. What comes is read
by the types of the fields that it becomes, and refused where it does not fit: a node's words are as
hostile as those of the sessions that it holds.
"""

import functools
import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from divingbell.command import CommandEvent, CommandResult
from divingbell.models import Event, Output, Result
from divingbell.shares import weight
from divingbell_inside import frames, values

MAX_WEIGHT = 4_000_000
"""Of the JSON of one form, see `divingbell.shares.weight`: a value of that weight is the largest
that a session gives."""
LIGHT = 400_000
"""The same of what is read on the event loop: some 25 ms. Twice what an interpreter may answer."""
LARGE = 1 << 16
"""Bytes of JSON beyond which it is read and written in a thread."""
MOST = 1 << 62
"""Items and characters of a value: what it is made of was weighed before."""

MAX_NUMBER = 1 << 63
"""Of the fields of records, which count seconds and bytes: Python reads numbers of any length."""

Made = TypeVar("Made")
Form = dict[str, Any]


def written(form: Form | list[Any], raw: Iterable[bytes] = ()) -> tuple[dict[str, int], bytes]:
    """Return what the header says of a form, and the body."""
    text = _COMPACT.encode(form).encode()
    return {"json": len(text)}, b"".join((text, *raw))


def parsed(header: frames.Header, body: bytes, most: int = MAX_WEIGHT) -> tuple[Any, memoryview]:
    """Return the JSON of a form and its raw bytes.

    Raises:
        FrameError: it is none, or too heavy.
    """
    size = header.get("json")
    if type(size) is not int or not 0 <= size <= len(body):
        raise frames.FrameError("a form of no size")
    text = body[:size]
    if weight.is_heavier(text, most):
        raise frames.FrameError("a form is made of too many values")
    try:
        form = frames.STRICT.decode(text.decode())
        if b"\\ud" in text or b"\\uD" in text:
            # A lone surrogate would blow up later, wherever the text is first encoded.
            json.dumps(form, ensure_ascii=False).encode()
        return form, memoryview(body)[size:]
    except (ValueError, RecursionError) as error:
        raise frames.FrameError(f"a form is no strict JSON: {error}") from None


_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


# Out


def of(item: Any) -> Form:
    """Return the fields of a record of plain values that are not as usual."""
    form = {}
    for name, usual in _usual(item.__class__):
        value = getattr(item, name)
        if value is not usual and value != usual:
            form[name] = of(value) if is_dataclass(value) else _plain(value)
    return form


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [of(each) if is_dataclass(each) else each for each in value]
    return dict(value) if isinstance(value, Mapping) else value


@functools.cache
def _usual(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((item.name, item.default) for item in fields(kind))


class Packing:
    """Collects the raw bytes of forms that travel together."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self._size = 0

    def outputs(self, outputs: Iterable[Output]) -> list[Form]:
        return [self._output(output) for output in outputs]

    def _output(self, output: Output) -> Form:
        if isinstance(output.data, str):
            return of(output)
        start = self._size
        self._size += len(output.data)
        self.raw.append(output.data)
        form = of(replace(output, data=""))
        form["at"] = [start, self._size]
        return form

    def event(self, event: Event) -> Form:
        form = of(replace(event, outputs=())) if event.outputs else of(event)
        if event.outputs:
            form["outputs"] = self.outputs(event.outputs)
        return form

    def result(self, result: Result) -> Form:
        form = of(replace(result, outputs=(), value=None))
        if result.value is not None:
            form["value"] = values.encode(result.value, items=MOST, text=MOST)
        form["outputs"] = self.outputs(result.outputs)
        return form


# In


def read(kind: type[Made], form: object) -> Made:
    """Make a record of a form.

    Raises:
        FrameError: it does not fit.
    """
    hint: Any = kind
    made: Made = _reader(hint)(form)
    return made


def read_outputs(form: object, raw: memoryview) -> tuple[Output, ...]:
    if not isinstance(form, list):
        raise frames.FrameError("outputs that are no list")
    return tuple(_read_output(each, raw) for each in form)


def _read_output(form: object, raw: memoryview) -> Output:
    if not isinstance(form, dict):
        raise frames.FrameError("an output that is none")
    match form.pop("at", None):
        case None:
            form.setdefault("data", "")
            return read(Output, form)
        case [int(start), int(end)] if 0 <= start <= end <= len(raw):
            return replace(read(Output, {**form, "data": ""}), data=bytes(raw[start:end]))
        case _:
            raise frames.FrameError("an output of no size")


def read_event(form: object, raw: memoryview) -> Event:
    if not isinstance(form, dict) or "result" in form or form.get("type") == "done":
        raise frames.FrameError("an event that is none")
    outputs = read_outputs(form.pop("outputs", []), raw)
    event = read(Event, form)
    return replace(event, outputs=outputs) if outputs else event


def size_of(event: Event) -> int:
    """Return about how much an event takes."""
    return len(event.text) + sum(len(output.data) for output in event.outputs)


def read_result(form: object, raw: memoryview) -> Result:
    if not isinstance(form, dict):
        raise frames.FrameError("a result that is none")
    value = form.pop("value", None)
    outputs = read_outputs(form.pop("outputs", []), raw)
    form.pop("ledger", None)  # that is made here, and nowhere else
    result = read(Result, form)
    if value is not None:
        try:
            value = values.decode(value, items=MOST, text=MOST)
        except ValueError as error:
            raise frames.FrameError(f"a value that is none: {error}") from None
    return replace(result, value=value, outputs=outputs)


def read_command_event(form: object) -> CommandEvent:
    event = read(CommandEvent, form)
    if event.type == "done":  # its result passes the border, and no other way
        raise frames.FrameError("an event that is none")
    return event


def read_command_result(form: object) -> CommandResult:
    return read(CommandResult, form)


Reader = Callable[[Any], Any]


@functools.cache
def _reader(hint: Any) -> Reader:
    """Return what reads a value of this type."""
    origin = get_origin(hint)
    if hint is Any:
        return lambda value: value
    if hint is float:
        return _float
    if hint in (str, int, bool, type(None)):
        return functools.partial(_exactly, hint)
    if origin is Literal:
        return functools.partial(_one_of, get_args(hint))
    if origin in (Union, types.UnionType):
        return functools.partial(_first, [_reader(each) for each in get_args(hint)])
    if origin is tuple:
        return functools.partial(_tuple, _reader(get_args(hint)[0]))
    if is_dataclass(hint):
        return _record(hint)
    if hint is bytes:
        return _never
    raise TypeError(f"no form is known for {hint}")


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise frames.FrameError(f"{kind.__name__} was expected, not {type(value).__name__}")
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise frames.FrameError("a number is out of range")
    return value


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise frames.FrameError("a number was expected")
    if abs(value) > MAX_NUMBER:
        raise frames.FrameError("a number is out of range")
    return float(value)


def _one_of(allowed: tuple[Any, ...], value: Any) -> Any:
    if type(value) is not str or value not in allowed:
        raise frames.FrameError("a word that is not known")
    return value


def _first(readers: list[Reader], value: Any) -> Any:
    for reader in readers[:-1]:
        try:
            return reader(value)
        except frames.FrameError:
            continue
    return readers[-1](value)


def _tuple(reader: Reader, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise frames.FrameError("a list was expected")
    return tuple(map(reader, value))


def _never(value: Any) -> Any:
    raise frames.FrameError("raw bytes stand behind the JSON")


def _record(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    needed = {
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    }
    readers: dict[str, Reader] = {}

    def read_record(value: Any) -> Any:
        if (
            type(value) is not dict
            or not needed <= value.keys()
            or not value.keys() <= hints.keys()
        ):
            raise frames.FrameError(f"this is no {kind.__name__}")
        for name in value.keys() - readers.keys():
            readers[name] = _reader(hints[name])
        try:
            return kind(**{name: readers[name](each) for name, each in value.items()})
        except (ValueError, TypeError) as error:
            raise frames.FrameError(f"this is no {kind.__name__}: {error}") from None

    return read_record
