"""The events of a cell on their way to its front, which may lose the line and come again."""

import asyncio
import itertools
from collections import deque
from typing import cast

from divingbell.models import Event
from divingbell.scale import forms
from divingbell.scale.line import FRAME_COST, SLACK, WINDOW, LineLost, Message, Stream
from divingbell.session import told_columns
from divingbell_inside import frames

AT_ONCE = 200
"""Events in one message: they are written, and read, while nobody else runs."""
AT_ONCE_BYTES = 1 << 20
"""Of them, beyond which a message has no more."""
IN_FLIGHT = WINDOW + SLACK
"""Bytes of messages that have left and may not have come: no more than a stream lets through."""
MAX_WAITING = 4 << 20
"""Bytes of events that wait for a front whose line broke; of more the oldest are dropped."""


class Events:
    """The events of a cell: many that have come in one message.

    Messages that have left are kept for as long as they may be under way. So a front whose line
    broke says how many it has, and gets the others on its new line.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream: Stream | None = stream
        self._waiting: list[Event | bytes] = []
        self._waiting_bytes = 0
        self._dropped = 0
        self._told = self._told_bytes = 0
        self._messages: deque[Message] = deque()
        """Those that may be under way, and those that have yet to leave."""
        self._bytes = 0
        self._first = self._next = 0
        """The numbers of the first of them, and of the one that leaves next."""
        self._going: asyncio.Task[None] | None = None

    def take(self, event: Event) -> None:
        self._waiting.append(event)
        self._waiting_bytes += forms.size_of(event) + FRAME_COST
        if self._stream is None and self._waiting_bytes > MAX_WAITING:
            self._drop_oldest()
        self._go_on()

    def tell_columns(self, told: bytes) -> None:
        """Pass on what the cell tells of its tables, within what a front keeps of it."""
        self._told += 1
        self._told_bytes += len(told)
        if self._told <= told_columns.MOST and self._told_bytes <= told_columns.MOST_BYTES:
            self._waiting.append(told)
            self._go_on()

    def again(self, stream: Stream, seen: int) -> None:
        """Go on with another stream, for a front that has so many messages.

        Raises:
            FrameError: it can't have that many, or said before that it has more.
        """
        if not self._first <= seen <= self._first + len(self._messages):
            raise frames.FrameError("a front has seen what was not sent")
        self.stop()
        self._stream, self._next = stream, seen
        self._go_on()

    async def all_left(self, stream: Stream) -> None:
        """Return when all have left by this stream.

        Raises:
            LineLost: it is lost, or the front has gone on with another one.
        """
        while self._stream is stream and self._going is not None:
            going = self._going
            await asyncio.wait([going])
            if self._going is going:
                going.result()
                break
        if self._stream is not stream:
            raise LineLost("the events of the cell have not all left")

    def stop(self) -> None:
        if self._going is not None:
            self._going.cancel()
            self._going = None

    def _go_on(self) -> None:
        if self._stream is not None and (self._going is None or self._going.done()):
            self._going = asyncio.create_task(self._pass_on(self._stream))

    async def _pass_on(self, stream: Stream) -> None:
        """Send what there is."""
        try:
            while self._stream is stream:
                if self._next < self._first + len(self._messages):
                    self._next += 1
                    await stream.send(*self._messages[self._next - 1 - self._first])
                    self._forget()
                elif self._waiting:
                    self._pack()
                else:
                    return
        except LineLost:
            if self._stream is stream:
                self._stream = None
                if self._waiting_bytes > MAX_WAITING:
                    self._drop_oldest()

    def _forget(self) -> None:
        """Let go of what must have come, because so much has been let through after it."""
        while self._first < self._next:
            size = len(self._messages[0].body) + FRAME_COST
            if self._bytes - size < IN_FLIGHT:
                return
            self._bytes -= size
            self._first += 1
            self._messages.popleft()

    def _drop_oldest(self) -> None:
        """Drop half of what waits, of its events; what was told of tables is kept by the border."""
        size, kept = 0, list[Event | bytes]()
        for each in reversed(self._waiting):
            if isinstance(each, bytes):
                kept.append(each)
                continue
            size += forms.size_of(each) + FRAME_COST
            if size <= MAX_WAITING // 2:
                kept.append(each)
            else:
                self._dropped += 1
        self._waiting = kept[::-1]
        self._waiting_bytes = sum(
            forms.size_of(each) + FRAME_COST for each in kept if not isinstance(each, bytes)
        )

    def _take_some(self) -> list[Event | bytes]:
        count = size = 0
        for each in self._waiting[:AT_ONCE]:
            count += 1
            if isinstance(each, bytes):
                size += len(each)
            else:
                size += forms.size_of(each)
                self._waiting_bytes -= forms.size_of(each) + FRAME_COST
            if size > AT_ONCE_BYTES:
                break
        some, self._waiting = self._waiting[:count], self._waiting[count:]
        return some

    def _pack(self) -> None:
        """Make messages of some events."""
        some = self._take_some()
        if self._dropped:
            words = (
                f"the line to the node broke, and {self._dropped:,} pieces of output were more "
                "than is kept for that time; they are in the result, as far as its limits allow"
            )
            cell = next((each.cell for each in some if not isinstance(each, bytes)), 0)
            some.insert(0, Event("notice", words, cell=cell))
            self._dropped = 0
        for is_told, group in itertools.groupby(some, lambda each: type(each) is bytes):
            if is_told:
                for told in group:
                    self._add(Message({"columns": True}, cast(bytes, told)))
            else:
                packing = forms.Packing()
                events = [packing.event(cast(Event, event)) for event in group]
                self._add(Message(*forms.written(events, packing.raw)))

    def _add(self, message: Message) -> None:
        self._bytes += len(message.body) + FRAME_COST
        self._messages.append(message)
