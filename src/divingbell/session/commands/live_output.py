"""The output of a command as it comes, for one reader who may be slow."""

import asyncio
import io
from collections.abc import AsyncGenerator, Iterator, Mapping

from divingbell.command import CommandEvent
from divingbell.session.commands.output import StreamName
from divingbell.session.intake import TextDecoder

MAX_UNREAD = 1 << 18
"""Bytes of one stream that wait to be read; what comes then is left out."""


class _Unread:
    """The text of one stream that waits to be read."""

    def __init__(self, name: StreamName, unfinished: bytes) -> None:
        self._name = name
        self._decoder = TextDecoder()
        self._decoder.feed(unfinished)
        self._clear()

    def _clear(self) -> None:
        self._text = io.StringIO()
        self._size = 0
        self._left_out = 0

    def add(self, data: bytes, *, last: bool = False) -> None:
        text = self._decoder.feed(
            data, last=last
        )  # also of what is left out: characters stay whole
        if self._left_out or self._size + len(data) > MAX_UNREAD:
            self._left_out += len(data)
        else:
            self._size += len(data)
            self._text.write(text)

    def take(self) -> Iterator[CommandEvent]:
        text, left_out = self._text.getvalue(), self._left_out
        self._clear()
        if text:
            yield CommandEvent(self._name, text)
        if left_out:
            words = f"{left_out:,} bytes of {self._name} are left out here: the reader was too slow"
            yield CommandEvent("notice", words)


class LiveOutput:
    """What a command writes from now on, until it has ended."""

    def __init__(self, unfinished: Mapping[StreamName, bytes]) -> None:
        """Begin, for each stream, after those bytes of a character that is not complete."""
        self._streams = {name: _Unread(name, data) for name, data in unfinished.items()}
        self._news = asyncio.Event()
        self._ended = False

    def add(self, name: StreamName, data: bytes) -> None:
        self._streams[name].add(data)
        self._news.set()

    def end(self) -> None:
        """Take it that nothing more comes."""
        for stream in self._streams.values():
            stream.add(b"", last=True)
        self._ended = True
        self._news.set()

    async def events(self) -> AsyncGenerator[CommandEvent, None]:
        """Yield what has come and was not read, as soon as there is something."""
        ended = False
        while not ended:
            await self._news.wait()
            self._news.clear()
            ended = self._ended
            for stream in self._streams.values():
                for event in stream.take():
                    yield event
