"""The frame format of the tether: the one file that host and inside both import.

A frame is two lengths, a small JSON object (the header) and raw bytes (the body). Bulk data
(code, images, file content) travels in the body, so that the header stays small and cheap to
check. The reader treats every frame as hostile: lengths are capped before anything is stored,
and the JSON must be strict. Nothing is ever unpickled.
"""

import json
import math
import socket
import struct
from collections.abc import Callable
from typing import Any

LENGTHS = struct.Struct("!II")
MAX_HEADER = 1 << 20
MAX_BODY = 16 << 20
ARGV = "sys.argv"
"""The key of a script's arguments among the variables of a cell: no variable can be called so."""
MAX_DISPLAY_TEXT = 4 << 20
"""Bytes of the text of one display."""
MAX_DEPTH = 64
RECEIVE_SIZE = 1 << 18
MARK_NUMBER_SIZE = 4
"""Bytes of the number behind a mark in the output pipe."""

Header = dict[str, Any]
_CONTAINERS = frozenset({list, dict})


class FrameError(ValueError):
    """Raised where the other side sent something that is not a frame."""


def pack(header: Header, body: bytes = b"") -> bytes:
    """Return the frame as bytes.

    Raises:
        FrameError: the header or the body is over its cap or is not plain JSON.
    """
    try:
        text = _COMPACT.encode(header).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"the header is not plain JSON: {error}") from None
    if len(text) > MAX_HEADER:
        raise FrameError(f"the header has {len(text)} bytes, {MAX_HEADER} are allowed")
    if len(body) > MAX_BODY:
        raise FrameError(f"the body has {len(body)} bytes, {MAX_BODY} are allowed")
    return LENGTHS.pack(len(text), len(body)) + text + body


def parse(text: bytes | bytearray | memoryview) -> Header:
    """Return the header, or raise FrameError for anything but one strict JSON object."""
    raw = bytes(text)
    try:
        value = STRICT.decode(raw.decode("utf-8"))
        if b"\\ud" in raw or b"\\uD" in raw:
            # A lone surrogate would blow up later, wherever the text is first encoded.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise FrameError("the header is nested too deeply") from None
    except ValueError as error:
        raise FrameError(f"the header is not strict JSON: {error}") from None
    if not isinstance(value, dict):
        raise FrameError("the header is not an object")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Refuse a value that is nested too deeply: whoever prints or copies it later must not run
    out of stack."""
    level = [value]
    for _ in range(MAX_DEPTH - 1):
        # Only those that hold something lead deeper. Measured: with 19,000 empty lists it took
        # longer here than to parse them; so they are left out by C.
        level = [
            child
            for item in level
            for child in filter(None, item.values() if type(item) is dict else item)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return
    raise FrameError("the header is nested too deeply")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> Header:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class Decoder:
    """Cuts a stream of bytes into frames; raises FrameError on the first bad one.

    `check` sees each header before it is parsed, and may raise FrameError too. The caps may be
    lower than those of all frames.
    """

    def __init__(
        self,
        check: Callable[[bytearray], None] = lambda raw: None,
        *,
        max_header: int = MAX_HEADER,
        max_body: int = MAX_BODY,
    ) -> None:
        self._check = check
        self._caps = max_header, max_body
        self._buffer = bytearray()
        self.header_size = 0
        """Of the frame that was given out last, as it came."""

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes in; nothing is looked at yet."""
        self._buffer += data

    def next_frame(self) -> tuple[Header, bytes] | None:
        """Return the next frame, if it is there as a whole."""
        buffer = self._buffer
        if len(buffer) < LENGTHS.size:
            return None
        head, body = LENGTHS.unpack_from(buffer)
        check_lengths(head, body, *self._caps)
        middle = LENGTHS.size + head
        end = middle + body
        if len(buffer) < end:
            return None
        self.header_size = head
        raw = buffer[LENGTHS.size : middle]
        self._check(raw)
        header = parse(raw)
        content = bytes(memoryview(buffer)[middle:end]) if body else b""
        del buffer[:end]
        return header, content


def check_lengths(
    head: int, body: int, max_header: int = MAX_HEADER, max_body: int = MAX_BODY
) -> None:
    """Raise FrameError unless both lengths are within their caps."""
    if not 2 <= head <= max_header or body > max_body:
        raise FrameError(f"a frame claims {head} + {body} bytes")


def receive(line: socket.socket) -> tuple[Header, bytes] | None:
    """Read one frame from a blocking socket; None when the other side has closed it."""
    lengths = _read(line, LENGTHS.size)
    if lengths is None:
        return None
    head, body = LENGTHS.unpack(lengths)
    check_lengths(head, body)
    both = _read(line, head + body)
    if both is None:
        return None
    return parse(both[:head]), bytes(both[head:])


def _read(line: socket.socket, size: int) -> bytearray | None:
    # The common small frame arrives whole: one call, no loop.
    data = bytearray(line.recv(min(size, RECEIVE_SIZE)))
    while len(data) < size:
        chunk = line.recv(min(size - len(data), RECEIVE_SIZE))
        if not chunk:
            return None
        data += chunk
    return data if data or not size else None
