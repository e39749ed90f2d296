"""The output of a command: of each stream its start and its end, and all of it in a file if that
is not all."""

from collections.abc import Callable
from typing import Literal

from divingbell.session.intake import TextDecoder
from divingbell.session.tail import Run, Tail
from divingbell.session.transcript import MAX_PIECES, TAIL_SHARE, whole_characters

StreamName = Literal["stdout", "stderr"]


class StreamOutput:
    """What a command has written to one stream. If some is left out, all goes to `overflow`."""

    def __init__(
        self, name: StreamName, limit: int, overflow: Callable[[StreamName, bytes], None]
    ) -> None:
        self.name: StreamName = name
        self.bytes = 0
        self._limit = limit
        self._overflow = overflow
        self._raw: bytearray | None = bytearray()
        """All of it, until some is left out."""
        self._room = limit - limit // TAIL_SHARE
        self._head: list[str] = []
        self._decoder = TextDecoder()
        self._tail = Tail(limit // TAIL_SHARE)
        self._unshown: list[str] = []

    @property
    def cut(self) -> bool:
        """Whether text was left out."""
        return self._tail.dropped > 0

    @property
    def text(self) -> str:
        """What is there so far."""
        return "".join(self._head) + self._end()

    def _end(self) -> str:
        words = f"\n[… {self._tail.dropped:,} bytes left out …]\n" if self.cut else ""
        return words + "".join(run.text for run in self._tail if isinstance(run, Run))

    def add(self, data: bytes) -> None:
        self.bytes += len(data)
        if self._raw is None:
            self._overflow(self.name, data)
        else:
            self._raw += data
        shown = data[:0]
        if self._room:
            shown = data if len(data) <= self._room else whole_characters(data[: self._room])
            self._show(self._decoder.feed(shown))
            self._room -= len(shown)
        if len(shown) < len(data):
            self._room = 0
            self._tail.add_text(self.name, 0, self._decoder.pending() + data[len(shown) :])
            if self.cut and self._raw is not None:
                raw, self._raw = bytes(self._raw), None
                self._overflow(self.name, raw)

    def _show(self, text: str) -> None:
        if text:
            self._head.append(text)
            self._unshown.append(text)
            if len(self._head) > MAX_PIECES:
                self._head = ["".join(self._head)]

    def unfinished(self) -> bytes:
        """Return the bytes of a character that is not complete, and so not in `text` yet."""
        pending = self._decoder.pending()
        self._decoder.feed(pending)
        return pending

    def take_shown(self) -> str:
        """Return the text of the start that has come since this was last asked."""
        text = "".join(self._unshown)
        self._unshown.clear()
        return text

    def finish(self) -> str:
        """Take it that nothing more comes; return the text that was not shown yet."""
        self._show(self._decoder.feed(b"", last=True))
        return self.take_shown() + self._end()
