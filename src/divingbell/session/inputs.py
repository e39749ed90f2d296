"""The input of a cell: code, values of variables and arguments, checked and written as bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from divingbell.errors import InvalidInput
from divingbell_inside import frames, values

MAX_CODE = frames.MAX_BODY


def encoded(
    code: str, context: Mapping[str, Any] | None, argv: Sequence[str] | None
) -> tuple[bytes, bytes]:
    """Return the source, and the values as JSON (see `divingbell_inside.values`).

    Raises:
        InvalidInput: the code is no text or too long, or a value can't be passed exactly as it is.
    """
    if not isinstance(code, str):
        raise InvalidInput(f"code must be text, not {type(code).__name__}")
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the code is not valid text: {error.reason} at {error.start}") from None
    variables = _variables(context or {}, argv) if context or argv is not None else b""
    if len(source) + len(variables) > MAX_CODE:
        raise _too_long(f"{len(source) + len(variables):,}")
    return source, variables


def _variables(context: Mapping[str, Any], argv: Sequence[str] | None) -> bytes:
    names = dict(context)
    for name in names:
        if type(name) is not str or not name.isidentifier():
            raise InvalidInput(f"context: {name!r} can't be the name of a variable")
    if argv is not None:
        names[frames.ARGV] = _checked(argv)
    try:
        return values.to_json(names, items=MAX_CODE, text=MAX_CODE)
    except values.TooLarge:
        raise _too_long(f"more than {MAX_CODE:,}") from None
    except values.NotPlain as error:
        place = error.place.removeprefix(".")
        raise InvalidInput(
            f"context: {place} {error.reason}. Values are passed exactly as they are or not at "
            "all: convert it to plain data (numbers, text, bytes, dates, lists, dicts, sets …), "
            "or put it into a file with session.files.put()"
        ) from None


def _too_long(size: str) -> InvalidInput:
    return InvalidInput(
        f"code and context have {size} bytes, {MAX_CODE:,} are allowed; "
        "put large data into a file with session.files.put()"
    )


def _checked(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str) or not argv or not all(type(word) is str for word in argv):
        raise InvalidInput("argv must be a list of texts, with the name of the script as the first")
    return list(argv)
