"""The transcript: the output of one cell, passed on as events and kept for the result, in limits.

There is one rule for all text, whether it is printed or the text of a display or of the value. Its
start is shown as it comes, its end when the cell is over, and if both are more than the limit
allows, what is between them is left out and all of it is kept in a file. Images and other forms of
displays have a limit of their own; what goes over it is named by a line of text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from divingbell.models import MB, Event, Output, OutputName
from divingbell.session.intake import TextDecoder, field_of
from divingbell.session.tail import RUN_COST, Run, Tail
from divingbell_inside import drawn_texts, frames, layout

MAX_PARTS = 32
MAX_DISPLAY_ID = 200
TAIL_SHARE = 4
"""One part in so many of the text is its end."""
RICH_FACTOR = 8
"""Other forms of displays (HTML, images) may take this many times the limit on text."""
MIN_RICH = 4 * MB
"""But at least this, where the text is for a model to read: twenty plots of the usual size."""

EVENT_COST = RUN_COST
"""Bytes that an event counts for besides its content: many empty ones cost the host too."""
TEXT_DISPLAY_COST = 256
"""The same for a display of text, which is kept and passed on by itself."""
DISPLAY_COST = 1024
"""The same for each other form of a display."""
MAX_EVENTS = 50_000
"""Events passed on for one cell; what comes later is in the result only."""
MAX_PIECES = 4096

TEXT = "text/plain"
_MIME = re.compile(r"[\w.+-]{1,100}/[\w.+;=-]{1,100}")
_FILE = re.compile(r"cell-\d{1,9}-\d{1,9}\.[a-z]{1,5}")
_TEXTUAL = ("text/", "application/json", "application/javascript", "image/svg+xml")

Sink = Callable[[Event], None]
Overflow = Callable[[bytes], None]


@dataclass(slots=True)
class _Shown:
    """A display in its place, with what it has taken of the limits."""

    outputs: list[Output] = field(default_factory=list)
    text_cost: int = 0
    rich_cost: int = 0


def most_rich(limit: int) -> int:
    """Return the bytes of other forms than text that a limit on output allows."""
    return max(limit * RICH_FACTOR, MIN_RICH)


class Transcript:
    """Collects the outputs of a cell. If text is left out, all of it goes to `overflow`."""

    def __init__(self, cell: int, limit: int, sink: Sink, overflow: Overflow) -> None:
        self.cell = cell
        self.bytes = 0
        self._limit = limit
        self._most_rich = most_rich(limit)
        self._most_emitted = limit + self._most_rich
        self._sink = sink
        self._overflow = overflow
        self._tail = Tail(limit // TAIL_SHARE)
        self._most_head = limit - limit // TAIL_SHARE
        self._head_is_full = False
        self._charged = 0
        self._raw: bytearray | None = bytearray()
        """All text so far, until it goes to `overflow`: when some is left out, or when it is over
        the limit although what was cleared or updated has made room."""
        self._most_places = limit // EVENT_COST + self._most_rich // DISPLAY_COST
        """Outputs in a row that the limits allow, if none is taken back."""
        self._rich_bytes = 0
        self._places: dict[str, _Shown] = {}
        self._events = 0
        self._emitted = 0
        self._result_size = 0
        """Characters of the text of the value."""
        self._decoder = TextDecoder()
        self._items: list[list[Output]] = []
        self._pieces: list[str] = []
        self._stream: tuple[OutputName, int] | None = None
        self._clear_before_next = False

    @property
    def cut(self) -> bool:
        """Whether text was left out."""
        return self._tail.dropped > 0

    # Text

    def raw(self, data: bytes) -> None:
        """Take text from the pipe."""
        self.text("stdout", data, self.cell)

    def text(self, name: OutputName, data: bytes, cell: int) -> None:
        self.bytes += len(data)
        self._record(data)
        if data:
            self._clear_if_asked()
        if not self._head_is_full:
            if self._stream not in (None, (name, cell)):
                # Each change of stream is an output of its own, which costs more than text.
                self._charged += EVENT_COST
            shown = self._start_of(data)
            # The pipe is cut anywhere; an event holds whole characters.
            piped = name == "stdout" and cell == self.cell
            decoded = self._decoder.feed(shown) if piped else shown.decode("utf-8", "replace")
            if decoded:
                self._append(name, decoded, cell)
            data = data[len(shown) :]
        if data:
            self._add_to_tail(name, cell, data)

    def _record(self, data: bytes) -> None:
        if self._raw is None:
            self._overflow(data)
        else:
            self._raw += data
            if len(self._raw) > self._limit:
                self._spill()

    def _spill(self) -> None:
        """Send all text to `overflow` from now on."""
        if self._raw is not None:
            raw, self._raw = bytes(self._raw), None
            self._overflow(raw)

    def _start_of(self, data: bytes) -> bytes:
        """Return as much of it as may still be shown at once."""
        room = max(self._most_head - self._charged, 0)
        shown = data if len(data) <= room else whole_characters(data[:room])
        self._charged += len(shown)
        return shown

    def _add_to_tail(self, name: OutputName, cell: int, data: bytes) -> None:
        if not self._head_is_full:
            self._head_is_full = True
            self._end_stream()
            half = self._decoder.pending()  # of a character, which goes on in what follows
            if half:
                self._tail.add_text("stdout", self.cell, half)
        self._tail.add_text(name, cell, data)
        if self.cut:
            self._spill()

    def _append(self, name: OutputName, text: str, cell: int) -> None:
        if self._stream != (name, cell):
            self._end_stream()
            self._stream = name, cell
        self._pieces.append(text)
        if len(self._pieces) > MAX_PIECES:
            self._pieces = ["".join(self._pieces)]
        self._emit(Event(name, text=text, cell=cell), len(text))

    def _emit(self, event: Event, size: int) -> None:
        """Pass it on, unless there was too much: whoever reads may be slow, and all of it waits."""
        self._events += 1
        self._emitted += size
        if self._events <= MAX_EVENTS and self._emitted <= self._most_emitted:
            self._sink(event)

    # Displays

    def display(self, header: frames.Header, body: bytes) -> None:
        """Take a display, or the value of the cell."""
        name: OutputName = "result" if header.get("result") is True else "display"
        cell = cell_of(header, self.cell)
        display_id = field_of(header, "id", str)
        if display_id is not None and len(display_id) > MAX_DISPLAY_ID:
            raise frames.FrameError("a display has an id that is too long")
        update = header.get("update") is True and display_id is not None
        parts = _parts_of(header, body)
        self._clear_if_asked()
        place = self._places.get(display_id) if update and display_id is not None else None
        shown = self._take_back(place) if place is not None else _Shown()
        items = self._tail if self._head_is_full else self._items
        self._show(parts, shown, name, cell, in_place=place is not None)
        if not shown.outputs:
            return
        if place is None:
            self._end_stream()
            if len(self._items) + len(self._tail) > self._most_places:
                raise frames.FrameError("displays were emptied, and more made in their place")
            items.append(shown.outputs)
            if display_id is not None:
                self._places[display_id] = shown
        self._emit(
            Event(
                name,
                outputs=tuple(shown.outputs),
                cell=cell,
                display_id=display_id,
                update=header.get("update") is True,
            ),
            len(body) + EVENT_COST,
        )

    def _take_back(self, shown: _Shown) -> _Shown:
        """Make room for what takes the place of an earlier display."""
        self._charged -= shown.text_cost
        self._rich_bytes -= shown.rich_cost
        shown.outputs.clear()
        shown.text_cost = shown.rich_cost = 0
        return shown

    def _show(
        self, parts: list["_Part"], shown: _Shown, name: OutputName, cell: int, *, in_place: bool
    ) -> None:
        too_large = []
        for part in parts:
            cost = len(part.raw) + DISPLAY_COST
            if part.kind == TEXT:
                self._show_text(part.raw, shown, name, cell, in_place=in_place)
            elif self._rich_bytes + cost <= self._most_rich:
                self._rich_bytes += cost
                shown.rich_cost += cost
                shown.outputs.append(_output(part, name, cell))
            else:
                too_large.append(part)
        if any(part.kind == TEXT for part in parts):
            # The others are other forms of what the text says, unless they are images.
            too_large = [part for part in too_large if part.kind in layout.IMAGES]
        for part in too_large[:1]:
            self._show_text(_line_for(part), shown, name, cell, in_place=in_place)

    def _show_text(
        self, raw: bytes, shown: _Shown, name: OutputName, cell: int, *, in_place: bool
    ) -> None:
        if len(raw) > frames.MAX_DISPLAY_TEXT:
            raise frames.FrameError("a display has more text than it may")
        text = _decoded(raw)
        if name == "result":
            self._result_size += len(text)
        line = raw.rstrip(b"\n") + b"\n"
        if not in_place:
            self._record(line)
        start = b""
        if in_place or not self._head_is_full:
            self._charged += TEXT_DISPLAY_COST
            start = self._start_of(raw)
            shown.text_cost += TEXT_DISPLAY_COST + len(start)
            if len(start) == len(raw):
                shown.outputs.append(Output(TEXT, text, name, cell))
                return
            if start:
                shown.outputs.append(Output(TEXT, _decoded(start), name, cell))
        self._add_to_tail(name, cell, line[len(start) :])

    # The rest

    def notice(self, text: str) -> None:
        self._sink(Event("notice", text=text, cell=self.cell))

    def tell(self, event: Event) -> None:
        """Pass on what is no output of the cell's own, such as the progress of a tool."""
        self._emit(replace(event, cell=self.cell), len(event.text))

    def clear(self, wait: bool) -> None:
        self._clear_before_next = True
        if not wait:
            self._clear_if_asked()

    def _clear_if_asked(self) -> None:
        if self._clear_before_next:
            self._clear_before_next = False
            self._items.clear()
            self._places.clear()
            self._pieces.clear()
            self._tail.clear()
            self._stream = None
            self._emit(Event("clear", cell=self.cell), 0)

    def _end_stream(self) -> None:
        if self._stream is not None:
            name, cell = self._stream
            text = settle_lines("".join(self._pieces))
            self._items.append([Output(TEXT, text, name, cell)])
            self._stream = None
            self._pieces = []

    def finish(self, kept: str = "") -> tuple[Output, ...]:
        """Return the outputs in the order they came. `kept` says where the text is that was left
        out."""
        rest = "" if self._head_is_full else self._decoder.feed(b"", last=True)
        if rest:
            self._append("stdout", rest, self.cell)
        self._end_stream()
        outputs = [output for outputs in self._items for output in outputs]
        if self.cut:
            words = f"\n[… {self._tail.dropped:,} bytes left out{kept} …]\n"
            outputs.append(self._pass_on_late(*self._tail.first_stream, words))
        for entry in self._tail:
            if isinstance(entry, Run):
                outputs.append(self._pass_on_late(entry.name, entry.cell, entry.text))
            else:
                outputs += entry
        return tuple(_joined(outputs))

    def result_in(self, outputs: tuple[Output, ...]) -> tuple[str, bool]:
        """Return the text of the value among the outputs, and whether some of it was left out."""
        text = "".join(
            str(output.data)
            for output in outputs
            if output.name == "result" and output.type == TEXT
        )
        is_short = self._tail.first_stream[0] == "result" or len(text) < self._result_size
        if self.cut and is_short:
            return text, True
        return text[: self._result_size], False  # without the end of the line, where it got one

    def _pass_on_late(self, name: OutputName, cell: int, text: str) -> Output:
        output = Output(TEXT, settle_lines(text), name, cell)
        if name in ("stdout", "stderr"):
            self._sink(Event(name, text=text, cell=cell))
        else:
            self._sink(Event(name, outputs=(output,), cell=cell))
        return output


def cell_of(header: frames.Header, newest: int) -> int:
    """Return the cell that a frame says it belongs to, if there is such a cell."""
    cell = field_of(header, "cell", int, newest)
    return cell if 0 < cell <= newest else newest


def _joined(outputs: list[Output]) -> Iterator[Output]:
    """Yield the outputs, of a stream that was parted in start and end a single one: whoever reads
    it must not miss a word because it stands where that was done."""
    for (name, _, _), parts in groupby(outputs, _stream_of):
        first, *others = parts
        if name not in ("stdout", "stderr"):
            yield from (first, *others)
        else:
            text = "".join(str(part.data) for part in (first, *others))
            yield replace(first, data=text) if others else first


def _stream_of(output: Output) -> tuple[str, int, str]:
    return output.name, output.cell, output.type


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


class _Part(NamedTuple):
    """One form of a display."""

    kind: str
    raw: bytes
    path: str | None
    """The file in which the session says that it keeps it."""
    texts: tuple[str, ...] | None = None
    """Those in an image, as the session says."""


def _parts_of(header: frames.Header, body: bytes) -> list[_Part]:
    parts: Any = header.get("parts")
    if not isinstance(parts, list):
        raise frames.FrameError("a display has no parts")
    if len(parts) > MAX_PARTS:
        raise frames.FrameError("a display has too many parts")
    found = []
    start = 0
    for part in parts:
        match part:
            case [str(kind), int(size), *more] if 0 <= size <= len(body) - start:
                if _MIME.fullmatch(kind):  # else a program that reads the type might stumble
                    found.append(_Part(kind, body[start : start + size], _path_of(more)))
                start += size
            case _:
                raise frames.FrameError("a part of a display is not what it says")
    return _with_texts(found)


def _with_texts(parts: list[_Part]) -> list[_Part]:
    """Parts of a display without the one that has the texts of its image, which gets them."""
    told = [part for part in parts if part.kind == drawn_texts.KIND]
    if not told:
        return parts
    texts = _texts_of(told[0].raw) if len(told) == 1 else None
    others = (part for part in parts if part.kind != drawn_texts.KIND)
    return [part._replace(texts=texts) if part.kind in layout.IMAGES else part for part in others]


def _texts_of(raw: bytes) -> tuple[str, ...] | None:
    if len(raw) > drawn_texts.MOST_BYTES or raw.count(0) >= drawn_texts.MOST_TEXTS:
        return None
    try:
        return tuple(filter(None, raw.decode().split(drawn_texts.BETWEEN)))
    except UnicodeDecodeError:
        return None


def _path_of(more: list[Any]) -> str | None:
    match more:
        case []:
            return None
        case [str(file)] if _FILE.fullmatch(file):
            return f"{layout.OUTPUTS}/{file}"
        case _:
            raise frames.FrameError("a display is kept where none is")


def _line_for(part: _Part) -> bytes:
    where = f"; it is kept in {part.path}" if part.path else ""
    return f"[{part.kind}, {len(part.raw):,} bytes: too much to show{where}]".encode()


def _output(part: _Part, name: OutputName, cell: int) -> Output:
    data = _decoded(part.raw) if part.kind.startswith(_TEXTUAL) else part.raw
    return Output(part.kind, data, name, cell, part.path, part.texts)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:  # to mend it, byte by byte, takes ten times as long
        raise frames.FrameError("a text of a display is no text") from None
