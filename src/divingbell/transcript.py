"""What one cell shows: passed on as events at once, and kept for the result, within limits."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from divingbell.models import Event, Output
from divingbell.tether import TextDecoder, field_of
from divingbell_inside import frames

MAX_PARTS = 32
MAX_DISPLAY_ID = 200
_MIME = re.compile(r"[\w.+-]{1,100}/[\w.+;=-]{1,100}")
RICH_FACTOR = 8
"""Displays (HTML, images) may take this many times the limit on text."""

EVENT_COST = 64
"""Bytes that an event counts for besides its content: many empty ones cost the host too."""
DISPLAY_COST = 1024
"""The same for a display and for each of its parts, which are kept and passed on one by one."""
MAX_EVENTS = 50_000
"""Events passed on for one cell; what comes later is in the result only."""
MAX_PIECES = 4096

Sink = Callable[[Event], None]
Overflow = Callable[[bytes], None]
_TEXTUAL = ("text/", "application/json", "application/javascript", "image/svg+xml")


class Transcript:
    """Collects the outputs of a cell. Text past the limit goes to `overflow`."""

    def __init__(self, cell: int, limit: int, sink: Sink, overflow: Overflow) -> None:
        self.cell = cell
        self.bytes = 0
        self.cut = False
        self.displays_dropped = 0
        self._limit = limit
        self._sink = sink
        self._overflow = overflow
        self._charged = 0
        self._raw = bytearray()
        self._rich_bytes = 0
        self._place_of: dict[str, int] = {}
        self._events = 0
        self._decoder = TextDecoder()
        self._items: list[list[Output]] = []
        self._pieces: list[str] = []
        self._stream: tuple[str, int] | None = None
        self._clear_before_next = False

    def raw(self, data: bytes) -> None:
        """Text from the pipe."""
        self.text("stdout", data, self.cell)

    def text(self, name: str, data: bytes, cell: int) -> None:
        self.bytes += len(data)
        if self.cut:
            self._overflow(data)
            return
        if self._stream not in (None, (name, cell)):
            # Each change of stream is an output of its own, which costs the host more than text.
            self._charged += EVENT_COST
        room = self._limit - self._charged
        self._charged += len(data)
        self._raw += data
        if len(data) > room:
            self.cut = True
            self._overflow(bytes(self._raw))
            self._raw.clear()
            data = whole_characters(data[: max(room, 0)])
        # The pipe is cut anywhere; an event holds whole characters.
        piped = name == "stdout" and cell == self.cell
        decoded = self._decoder.feed(data) if piped else data.decode("utf-8", "replace")
        if decoded:
            self._append(name, decoded, cell)

    def _append(self, name: str, text: str, cell: int) -> None:
        self._clear_if_asked()
        if self._stream != (name, cell):
            self._end_stream()
            self._stream = name, cell
        self._pieces.append(text)
        if len(self._pieces) > MAX_PIECES:
            self._pieces = ["".join(self._pieces)]
        self._emit(Event(name, text=text, cell=cell))

    def _emit(self, event: Event) -> None:
        self._events += 1
        if self._events <= MAX_EVENTS:
            self._sink(event)

    def display(self, header: frames.Header, body: bytes) -> tuple[Output, ...]:
        """A display or the result; returns its outputs."""
        name = "result" if header.get("result") is True else "display"
        cell = cell_of(header, self.cell)
        parts = _parts_of(header, body)
        self._rich_bytes += len(body) + DISPLAY_COST * (1 + len(parts))
        if self._rich_bytes > self._limit * RICH_FACTOR:
            self.displays_dropped += 1
            return ()
        outputs = [_output(kind, raw, name, cell) for kind, raw in parts]
        self._clear_if_asked()
        self._end_stream()
        display_id = field_of(header, "id", str)
        if display_id is not None and len(display_id) > MAX_DISPLAY_ID:
            raise frames.FrameError("a display has an id that is too long")
        update = header.get("update") is True
        place = self._place_of.get(display_id) if update and display_id is not None else None
        if place is not None:
            self._items[place] = outputs
        else:
            if display_id is not None:
                self._place_of[display_id] = len(self._items)
            self._items.append(outputs)
        self._emit(
            Event(name, outputs=tuple(outputs), cell=cell, display_id=display_id, update=update)
        )
        return tuple(outputs)

    def notice(self, text: str) -> None:
        self._sink(Event("notice", text=text, cell=self.cell))

    def tell(self, event: Event) -> None:
        """Pass on what is no output of the cell's own, such as the progress of a tool."""
        self._emit(replace(event, cell=self.cell))

    def clear(self, wait: bool) -> None:
        self._clear_before_next = True
        if not wait:
            self._clear_if_asked()

    def _clear_if_asked(self) -> None:
        if self._clear_before_next:
            self._clear_before_next = False
            self._items.clear()
            self._place_of.clear()
            self._pieces.clear()
            self._stream = None
            self._emit(Event("clear", cell=self.cell))

    def _end_stream(self) -> None:
        if self._stream is not None:
            name, cell = self._stream
            text = settle_lines("".join(self._pieces))
            self._items.append([Output("text/plain", text, name, cell)])
            self._stream = None
            self._pieces = []

    def finish(self) -> tuple[Output, ...]:
        """The outputs in the order they came."""
        rest = "" if self.cut else self._decoder.feed(b"", last=True)
        if rest:
            self._append("stdout", rest, self.cell)
        self._end_stream()
        return tuple(output for outputs in self._items for output in outputs)


def cell_of(header: frames.Header, newest: int) -> int:
    """The cell that a frame says it belongs to, if there is such a cell."""
    cell = field_of(header, "cell", int, newest)
    return cell if 0 < cell <= newest else newest


def whole_characters(data: bytes) -> bytes:
    """Leave off the start of a character at the end."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] & 0xC0 != 0x80:  # the first byte of a character
            length = 1 if data[-back] < 0x80 else 2 if data[-back] < 0xE0 else 3
            length += data[-back] >= 0xF0
            return data if back >= length else data[:-back]
    return data


def settle_lines(text: str) -> str:
    """Apply carriage returns as a terminal would: of a progress bar, the last state stays."""
    if "\r" not in text:
        return text
    return "\n".join(_settle(line) for line in text.replace("\r\n", "\n").split("\n"))


def _settle(line: str) -> str:
    # From the last part back, so that each character is looked at once: a hostile line has
    # hundreds of thousands of parts.
    pieces: list[str] = []
    length = 0
    for part in reversed(line.split("\r")):
        if len(part) > length:
            pieces.append(part[length:])
            length = len(part)
    return "".join(pieces)


def _parts_of(header: frames.Header, body: bytes) -> list[tuple[str, bytes]]:
    parts: Any = header.get("parts")
    if not isinstance(parts, list):
        raise frames.FrameError("a display has no parts")
    if len(parts) > MAX_PARTS:
        raise frames.FrameError("a display has too many parts")
    found = []
    start = 0
    for part in parts:
        match part:
            case [str(kind), int(size)] if 0 <= size <= len(body) - start:
                if _MIME.fullmatch(kind):  # else a program that reads the type might stumble
                    found.append((kind, body[start : start + size]))
                start += size
            case _:
                raise frames.FrameError("a part of a display is not what it says")
    return found


def _output(kind: str, raw: bytes, name: str, cell: int) -> Output:
    if not kind.startswith(_TEXTUAL):
        return Output(kind, raw, name, cell)
    try:
        return Output(kind, raw.decode("utf-8"), name, cell)
    except UnicodeDecodeError:  # to mend it, byte by byte, takes ten times as long
        raise frames.FrameError("a text of a display is no text") from None
