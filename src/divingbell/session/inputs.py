"""The input of a cell: code, variables, arguments and tokens, checked and written as bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from divingbell.errors import InvalidInput
from divingbell_inside import frames, tokens, values

MAX_CODE = frames.MAX_BODY
MAX_TOKENS = 10_000
"""Tokens in one cell."""
MAX_TOKEN_VALUES = 4 << 20
"""Bytes of those tokens and of the values that they stand for, as JSON."""


@dataclass(frozen=True, slots=True)
class CellInput:
    """The input of a cell, as bytes."""

    source: bytes
    variables: bytes = b""
    """JSON (see `divingbell_inside.values`)."""
    tokens: bytes = b""
    """JSON (see `divingbell_inside.tokens`)."""

    @property
    def lengths(self) -> dict[str, int]:
        """What the header of the frame says, for the body to be cut again."""
        return {"context": len(self.variables), "tokens": len(self.tokens)}

    @property
    def body(self) -> bytes:
        return self.variables + self.tokens + self.source


def encoded(
    code: str,
    context: Mapping[str, Any] | None = None,
    argv: Sequence[str] | None = None,
    token_values: Mapping[str, str] | None = None,
) -> CellInput:
    """Return the input of a cell. Tokens in constants of the code become the values given for them.

    Raises:
        InvalidInput: the code is no text or too long, a value can't be passed exactly as it is, or
            there are too many tokens.
    """
    if not isinstance(code, str):
        raise InvalidInput(f"code must be text, not {type(code).__name__}")
    try:
        source = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the code is not valid text: {error.reason} at {error.start}") from None
    variables = _variables(context or {}, argv) if context or argv is not None else b""
    made = CellInput(source, variables, _tokens(token_values) if token_values else b"")
    size = len(source) + len(variables) + len(made.tokens)
    if size > MAX_CODE:
        raise _too_long(f"{size:,}")
    return made


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


def _tokens(given: Mapping[str, str]) -> bytes:
    if len(given) > MAX_TOKENS:
        raise InvalidInput(
            f"the code has {len(given):,} tokens in it, {MAX_TOKENS:,} are allowed: find the rows "
            "by something else, or run it in parts"
        )
    written = tokens.to_json(given)
    if len(written) > MAX_TOKEN_VALUES:
        raise InvalidInput(
            f"the values of the tokens in the code have {len(written):,} bytes, "
            f"{MAX_TOKEN_VALUES:,} are allowed: run it in parts, with fewer tokens in each"
        )
    return written


def _too_long(size: str) -> InvalidInput:
    return InvalidInput(
        f"code and context have {size} bytes, {MAX_CODE:,} are allowed; "
        "put large data into a file with session.files.put()"
    )


def _checked(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str) or not argv or not all(type(word) is str for word in argv):
        raise InvalidInput("argv must be a list of texts, with the name of the script as the first")
    return list(argv)
