"""The input of a cell: code, values of variables and arguments, checked and written as bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from divingbell.errors import InvalidInput
from divingbell_inside import frames

MAX_CODE = frames.MAX_BODY


def encoded(
    code: str, context: Mapping[str, Any] | None, argv: Sequence[str] | None
) -> tuple[bytes, bytes]:
    """Return the source, and the values as JSON.

    Raises:
        InvalidInput: the code is no text or too long, or a value is not plain data.
    """
    if not isinstance(code, str):
        raise InvalidInput(f"code must be text, not {type(code).__name__}")
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the code is not valid text: {error.reason} at {error.start}") from None
    values = b""
    if context or argv is not None:
        names = dict(context or {})
        for name in names:
            if not isinstance(name, str) or not name.isidentifier():
                raise InvalidInput(f"context: {name!r} can't be the name of a variable")
        if argv is not None:
            names[frames.ARGV] = _checked(argv)
        try:
            values = json.dumps(names, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"context: only plain data (numbers, text, lists, dicts …) can be passed: {error}"
            ) from None
    if len(source) + len(values) > MAX_CODE:
        raise InvalidInput(
            f"code and context have {len(source) + len(values):,} bytes, {MAX_CODE:,} are allowed; "
            "put large data into a file with session.files.put()"
        )
    return source, values


def _checked(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
        raise InvalidInput("argv must be a list of texts, with the name of the script as the first")
    return list(argv)
