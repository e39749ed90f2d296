"""The chain: each line of the log holds the hash of the line before it.

A line is a JSON object. The last of its names is `hash`, the SHA-256 of the bytes before that name,
and the one before is `previous`, the hash of the line before. Hashes are of bytes, so that whoever
checks them need not write JSON as we do.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BEGINNING = "0" * 64
"""The hash before the first line."""
MOST_LINE = 1 << 18
"""Bytes of a line. Records are bounded far below that: a longer one is none of ours."""
# Made once: `json.dumps` makes one each time that it is asked for more than its defaults.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_HASH = b',"hash":"'
_END = b'"}\n'
_TAIL = len(_HASH) + 64 + len(_END)


class Broken(Exception):
    """Raised for a line that does not fit the lines before it; the message says how."""


@dataclass(frozen=True, slots=True)
class Link:
    """The end of a chain: the number of its last record, and the hash of that."""

    number: int = 0
    hash: str = BEGINNING


def written(record: Mapping[str, Any]) -> str:
    """Return a record as JSON, which `line_of` takes in its place."""
    return _JSON.encode(record)


def line_of(record: Mapping[str, Any] | str, after: Link) -> tuple[bytes, Link]:
    """Return a record as the line that follows this end, and the new end."""
    number = after.number + 1
    said = (record if isinstance(record, str) else written(record))[1:-1]
    body = f'{{"number":{number},{said},"previous":"{after.hash}"'
    # Lone surrogates are text of others.
    data = body.encode("utf-8", "backslashreplace")
    digest = hashlib.sha256(data).hexdigest()
    return data + _HASH + digest.encode() + _END, Link(number, digest)


def record_in(line: bytes, after: Link | None) -> tuple[dict[str, Any], Link]:
    """Return the record of a line that follows this end, and the new end.

    Without an end only the line itself is checked.

    Raises:
        Broken: it is not what was written there.
    """
    data, tail = line[:-_TAIL], line[-_TAIL:]
    if not (tail.startswith(_HASH) and tail.endswith(_END)):
        raise Broken("it is no line of an audit log")
    digest = hashlib.sha256(data).hexdigest()
    if tail[len(_HASH) : -len(_END)] != digest.encode():
        raise Broken("its hash is not the one of what it says")
    try:
        record = json.loads(data + b"}")
        number, previous = record["number"], record["previous"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Broken("it is no record") from None
    if type(number) is not int or type(previous) is not str:
        raise Broken("it is no record")
    if after is not None and (number, previous) != (after.number + 1, after.hash):
        raise Broken("it does not follow the line before it")
    return record | {"hash": digest}, Link(number, digest)
