"""The line: one connection between a front and a node, for all that they ask each other.

Both sides prove that they know the node's secret before anything is parsed. Then frames go both
ways (divingbell_inside.frames), each with the number of a stream: a request opens one, and messages
go up and down it until the side that was asked has ended it. What the other side sends is hostile:
lengths are capped, headers weighed before they are parsed, nothing is unpickled, and whoever breaks
a rule loses the line.

Each stream has credit, which its reader renews: one that is not read holds up nobody else, and
takes no more memory than its window.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

from divingbell import errors, logs
from divingbell.errors import DivingbellError, InvalidInput, RateExceeded, SandboxUnavailable
from divingbell.session.intake import field_of
from divingbell.shares import weight
from divingbell_inside import frames

log = logs.logger("divingbell")

BEAT = 1.0
GIVEN_UP = 3.0
"""Seconds without any word, after which the other side is given up."""
PIECE = 1 << 17
"""Bytes of the body of one frame; what is longer comes in several."""
WINDOW = 1 << 20
"""Bytes of one stream that may be on their way, or wait to be read."""
SLACK = 1 << 18
"""Bytes beyond its window that are no offence: the last frame, and words that wait for nothing."""
FRAME_COST = 64
"""What a frame takes of a window beside its bytes."""
MAX_HEADER = 1 << 16
MAX_WEIGHT = 50_000
"""Of a header, see `divingbell.shares.weight`."""
MAX_MESSAGE = 40 << 20
"""Bytes of one message: the input of a cell has 16 MB, its result as much and its outputs."""
MAX_MESSAGES = 256 << 20
"""Bytes of all messages of a line that have yet to come as a whole."""
MAX_STREAMS = 20_000
"""Streams at once, of those that the other side has opened."""
FRAMES_A_TURN, SECONDS_A_TURN = 128, 0.001
"""What is taken in before others have their turn on the event loop."""
MAX_REASON = 2_000
MAX_UNREAD = 1 << 20
"""Bytes that have come and were not looked at, beyond which none are read."""


class LineLost(SandboxUnavailable):
    """Raised where a line broke, or its other side was given up."""


class NobodyListens(LineLost):
    """Raised where a node can't be called because its process is gone."""


class Message(NamedTuple):
    """A message of a stream."""

    header: frames.Header
    body: bytes = b""


class Stream:
    """A request and all that belongs to it."""

    def __init__(self, line: "Line", number: int, *, opened_here: bool) -> None:
        self.number = number
        self.line = line
        self._opened_here = opened_here
        self._credit = WINDOW
        self._unread = 0
        self._taken = 0
        """Bytes that were read, and are not yet told to the other side."""
        self._messages: deque[tuple[int, Message]] = deque()
        self._parts: bytearray | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._lost: DivingbellError | None = None
        self.on_message: Callable[[Message], bool] | None = None
        """Sees each message before it is queued; True if it has taken it."""
        self.ended = False
        self._is_asked = opened_here

    # Out

    def tell(self, header: frames.Header, body: bytes = b"") -> None:
        """Send a short message without waiting for anything."""
        if not self.ended:
            self._write(header, body)

    async def send(self, header: frames.Header, body: bytes = b"") -> None:
        """Send a message, as soon as the other side has read enough of those before it.

        Raises:
            LineLost: the line broke.
            InvalidInput: it is longer than the other side takes, which would cost all the line.
        """
        if len(body) > MAX_MESSAGE:
            raise InvalidInput(
                f"{len(body):,} bytes are more than pass between a program and a node at once "
                f"({MAX_MESSAGE:,}): lower the limit `output`, or use files"
            )
        at = 0
        while len(body) - at > PIECE:
            await self._until_writable()
            self._write({"more": True}, body[at : at + PIECE])
            at += PIECE
        await self._until_writable()
        self._write(header, body[at:] if at else body)

    async def end(self, header: frames.Header, body: bytes = b"") -> None:
        """Send the last message of a stream that the other side has opened."""
        await self.send({**header, "end": True}, body)
        self._end()

    def finish(self, header: frames.Header, body: bytes = b"") -> None:
        """Send the last message, which is short, without waiting for anything."""
        if not self.ended:
            self._write({**header, "end": True}, body)
            self._end()

    def fail(self, error: DivingbellError) -> None:
        """End it with an error."""
        if not self.ended:
            words = str(error)[:MAX_REASON].encode("utf-8", "replace").decode()
            told: frames.Header = {"error": error.code, "message": words}
            if isinstance(error, RateExceeded):
                told["retry_after"] = error.retry_after
            self.finish(told)

    def _write(self, header: frames.Header, body: bytes) -> None:
        self._credit -= self.line.write({"s": self.number, **header}, body) + FRAME_COST

    async def _until_writable(self) -> None:
        while True:
            if self._lost is not None:
                raise self._lost
            if self.ended:
                raise LineLost("the other side has ended what it was asked for")
            if self._credit > 0:
                if not self.line.is_full:
                    return
                await self.line.until_drained()
                continue
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer

    # In

    async def receive(self) -> Message:
        """Return the next message; the last one has `end` in its header. An error is raised.

        Raises:
            LineLost: the line broke.
            DivingbellError: what the other side says.
        """
        while not self._messages:
            if self._lost is not None:
                raise self._lost
            if self.ended:
                raise LineLost("the other side has ended what it was asked for")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        cost, message = self._messages.popleft()
        self._count_read(cost)
        if "error" in message.header:
            raise error_of(message.header)
        return message

    def listen(self, on_message: Callable[[Message], bool]) -> None:
        """Have messages seen as they come, before they are queued; first those that wait."""
        self.on_message = on_message
        waiting, self._messages = self._messages, deque()
        for cost, message in waiting:
            if on_message(message):
                self._count_read(cost)
            else:
                self._messages.append((cost, message))
        if self._lost is not None:
            on_message(_of_loss(self._lost))

    def abandon(self) -> None:
        """Take no more notice of what comes; nobody reads it any more."""
        self.on_message = lambda message: True
        while self._messages:
            self._count_read(self._messages.popleft()[0])

    def take(self, header: frames.Header, body: bytes, size: int) -> None:
        """Take a frame of it, which came in so many bytes.

        Raises:
            FrameError: it breaks a rule.
        """
        credit = field_of(header, "credit", int)
        if credit is not None:
            if not 0 < credit <= 2 * WINDOW:
                raise frames.FrameError("a credit that makes no sense")
            self._credit = min(self._credit + credit, WINDOW)
            _settle(self._writer)
            return
        cost = size + FRAME_COST
        self._unread += cost
        if self._unread > WINDOW + SLACK:
            raise frames.FrameError("a stream went on without credit")
        if header.get("more") is True:
            self._hold(body)
            self._count_read(cost)  # it could never be read as a whole else
            return
        if self._parts is not None:
            self.line.hold(-len(self._parts))
            parts, self._parts = self._parts, None
            parts += body
            body = bytes(parts)
        if "op" in header:
            if self._is_asked:
                raise frames.FrameError("a request came twice")
            self._is_asked = True
        message = Message(header, body)
        if self._opened_here and header.get("end") is True:
            self._end()
        if self.on_message is not None and self.on_message(message):
            self._count_read(cost)
        else:
            self._messages.append((cost, message))
            _settle(self._reader)

    def _hold(self, piece: bytes) -> None:
        self._parts = bytearray() if self._parts is None else self._parts
        self._parts += piece
        self.line.hold(len(piece))
        if len(self._parts) > MAX_MESSAGE:
            raise frames.FrameError(f"a message has more than {MAX_MESSAGE:,} bytes")

    def _count_read(self, cost: int) -> None:
        self._unread -= cost
        self._taken += cost
        if self._taken >= WINDOW // 2 and not self.ended:
            self.line.write({"s": self.number, "credit": self._taken})
            self._taken = 0

    # Its end

    def drop(self) -> None:
        """End it without a word: the other side has given it up."""
        if not self.ended:
            self._end()

    def _end(self) -> None:
        self.ended = True
        self.line.forget(self.number)
        _settle(self._writer)

    def lose(self, error: LineLost) -> None:
        """Take it that the line is gone; what came before it did can still be read."""
        self._lost = error
        self.ended = True
        self._parts = None
        _settle(self._writer)
        _settle(self._reader)
        if self.on_message is not None:
            self.on_message(_of_loss(error))


def _of_loss(error: DivingbellError) -> Message:
    return Message({"error": error.code, "message": str(error), "end": True})


def _settle(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


OnRequest = Callable[["Line", Stream, Message], None]
OnWord = Callable[["Line", Message], None]


class Line(asyncio.Protocol):
    """One end of a line, once both sides have proved that they know the secret.

    `on_request` gets each stream that the other side opens, `on_word` what belongs to none.
    """

    def __init__(self, name: str, *, opens_odd: bool) -> None:
        self.name = name
        """The other side, in words."""
        self.on_request: OnRequest = _refuse_request
        self.on_word: OnWord = lambda line, message: None
        self.goodbye = False
        """Whether the other side has said that it leaves."""
        self.on_lost: Callable[[Line, str], None] = lambda line, reason: None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._decoder = frames.Decoder(_check_weight, max_header=MAX_HEADER, max_body=PIECE)
        self._streams: dict[int, Stream] = {}
        self._next_number = 1 if opens_odd else 2
        self._opens_odd = opens_odd
        self._last_of_theirs = 0
        self._theirs = 0
        self._held = 0
        self._out: list[bytes] = []
        self._flushing = False
        self._paused: asyncio.Future[None] | None = None
        self._pending = 0
        self._taking = False
        self._not_reading = False
        self._heard = self._ticked = time.monotonic()
        self._wrote = False
        self._beating: asyncio.TimerHandle | None = None
        self.lost: str | None = None
        self.is_silent = False
        """Whether it was given up because nothing came any more."""

    # Out

    def request(self, header: frames.Header, body: bytes = b"") -> Stream:
        """Open a stream with a short request.

        Raises:
            LineLost: the line is gone.
        """
        stream = self._open()
        try:
            stream.tell(header, body)
        except InvalidInput:
            self.forget(stream.number)
            raise
        return stream

    async def request_with(self, header: frames.Header, body: bytes) -> Stream:
        """Open a stream with a request that may be long."""
        await self.until_drained()  # a number is given out when it leaves: they come in order
        stream = self._open()
        try:
            await stream.send(header, body)
        except BaseException:
            # Else what has left of it would be held over there for as long as the line lasts.
            stream.tell({"error": DivingbellError.code, "message": "it was given up"})
            self.forget(stream.number)
            raise
        return stream

    def _open(self) -> Stream:
        if self.lost is not None:
            raise LineLost(self.lost)
        stream = Stream(self, self._next_number, opened_here=True)
        self._streams[stream.number] = stream
        self._next_number += 2
        return stream

    def tell(self, header: frames.Header, body: bytes = b"") -> None:
        """Say something that belongs to no stream."""
        self.write({"s": 0, **header}, body)

    def write(self, header: frames.Header, body: bytes = b"") -> int:
        """Write a frame, and return its bytes; all of one turn of the event loop leave together.

        Raises:
            InvalidInput: its header is one for which the other side would give up the line.
        """
        if self._transport is None or self.lost is not None:
            return 0
        frame = _packed(header, body)
        self._out.append(frame)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
        return len(frame)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self._out:
            self._wrote = True
            self._transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
        self._out.clear()

    @property
    def is_full(self) -> bool:
        """Whether the other side reads too slowly for more to be written."""
        return self._paused is not None

    async def until_drained(self) -> None:
        while self._paused is not None:
            await asyncio.shield(self._paused)

    def pause_writing(self) -> None:
        self._paused = self._paused or self._loop.create_future()

    def resume_writing(self) -> None:
        paused, self._paused = self._paused, None
        _settle(paused)

    # In

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, on a connection that is proved already."""
        transport = cast(asyncio.Transport, transport)  # uvloop's is none of asyncio's classes
        if self.lost is not None:
            transport.abort()
            return
        self._transport = transport
        transport.set_write_buffer_limits(high=1 << 20)
        self._heard = self._ticked = time.monotonic()
        self._beat()

    def data_received(self, data: bytes) -> None:
        self._heard = time.monotonic()
        self._decoder.feed(data)
        self._pending += len(data)
        if not self._taking:
            self._take()
        if self._pending > MAX_UNREAD and not self._not_reading and self._transport is not None:
            self._not_reading = True
            self._transport.pause_reading()

    def _take(self) -> None:
        """Take in some frames; the rest when others have had their turn."""
        self._taking = False
        ends = time.perf_counter() + SECONDS_A_TURN
        try:
            for _ in range(FRAMES_A_TURN):
                if self.lost is not None:
                    return
                frame = self._decoder.next_frame()
                if frame is None:
                    self._pending = 0
                    self._read_on()
                    return
                self._take_frame(*frame, self._decoder.header_size)
                if time.perf_counter() > ends:
                    break
        except frames.FrameError as error:
            self.lose(f"{self.name} broke the rules of the line: {error}")
            return
        except Exception:  # a fault of ours; what comes after it can't be trusted to be in order
            log.exception("a frame of %s could not be taken", self.name)
            self.lose(f"what {self.name} said could not be taken")
            return
        self._taking = True
        self._loop.call_soon(self._take)

    def _read_on(self) -> None:
        if self._not_reading and self._transport is not None:
            self._not_reading = False
            self._transport.resume_reading()

    def _take_frame(self, header: frames.Header, body: bytes, head: int) -> None:
        self._heard = time.monotonic()
        size = frames.LENGTHS.size + head + len(body)
        number = header.pop("s", None)
        if type(number) is not int or number < 0:
            raise frames.FrameError("a frame without the number of a stream")
        if number == 0:
            if header.get("op") == "goodbye":
                self.goodbye = True
            elif header.get("op") != "beat":
                self.on_word(self, Message(header, body))
        elif (stream := self._streams.get(number)) is not None:
            stream.take(header, body, size)
        elif number % 2 == self._opens_odd:
            if number >= self._next_number:
                raise frames.FrameError("an answer to what nobody has asked")
        elif number > self._last_of_theirs:
            self._begin(number, header, body, size)
        elif "op" in header:
            raise frames.FrameError("a request came twice")

    def _begin(self, number: int, header: frames.Header, body: bytes, size: int) -> None:
        self._last_of_theirs = number
        if self._theirs >= MAX_STREAMS:
            raise frames.FrameError(f"more than {MAX_STREAMS:,} requests at once")
        stream = Stream(self, number, opened_here=False)
        self._streams[number] = stream
        self._theirs += 1
        stream.on_message = lambda message: self._requested(stream, message)
        stream.take(header, body, size)

    def _requested(self, stream: Stream, message: Message) -> bool:
        stream.on_message = None
        if "error" not in message.header:
            self.on_request(self, stream, message)
        else:
            stream.drop()  # it was given up before it had come as a whole
        return True

    def hold(self, size: int) -> None:
        """Count bytes of messages that have yet to come as a whole.

        Raises:
            FrameError: there are too many.
        """
        self._held += size
        if self._held > MAX_MESSAGES:
            raise frames.FrameError("too much has begun and does not end")

    def forget(self, number: int) -> None:
        """Take a stream off the line: it has ended."""
        if self._streams.pop(number, None) is not None and number % 2 != self._opens_odd:
            self._theirs -= 1

    # Its end

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._ticked > 2 * BEAT:
            self._heard = now  # it is this process that has hung: what came meanwhile is not read
        self._ticked = now
        if now - self._heard > GIVEN_UP:
            self.is_silent = True
            self.lose(f"{self.name} gave no sign of life for {GIVEN_UP:g} s")
            return
        if not self._wrote:
            self.write({"s": 0, "op": "beat"})
        self._wrote = False
        self._beating = self._loop.call_later(BEAT, self._beat)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, error: Exception | None) -> None:
        why = f": {error}" if error is not None else ""
        self.lose(f"the line to {self.name} broke{why}")

    def lose(self, reason: str) -> None:
        """Give the line up; every stream on it is lost."""
        if self.lost is not None:
            return
        self.lost = reason
        if self._beating is not None:
            self._beating.cancel()
        if self._transport is not None:
            self._flush()
            # Who does not read would keep what is written, and the connection, for ever.
            silent = self._paused is not None or self.is_silent
            self._transport.abort() if silent else self._transport.close()
        self.resume_writing()
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.lose(LineLost(reason))
        self.on_lost(self, reason)

    def close(self) -> None:
        """Say goodbye, and end it."""
        self.tell({"op": "goodbye"})
        self.lose("it was closed")


def _refuse_request(line: Line, stream: Stream, message: Message) -> None:
    stream.fail(DivingbellError("nothing is answered here"))


def _packed(header: frames.Header, body: bytes) -> bytes:
    """Return a frame that the other side takes: texts in headers may come from anywhere, and one
    of them must not cost everybody the line."""
    frame = frames.pack(header, body)
    begin = frames.LENGTHS.size
    end = begin + frames.LENGTHS.unpack_from(frame)[0]
    if end - begin > MAX_HEADER:
        raise InvalidInput("a text is too long to be sent to a node: shorten names and reasons")
    if frame.find(b"\\ud", begin, end) >= 0:  # half a character, or both halves of one
        try:
            frames.parse(frame[begin:end])
        except frames.FrameError:
            raise InvalidInput("a text has half a character in it (a surrogate)") from None
    return frame


def _check_weight(header: bytearray) -> None:
    if weight.is_heavier(header, MAX_WEIGHT):
        raise frames.FrameError("a header is made of too many values")


def error_of(header: frames.Header) -> DivingbellError:
    """Return the error that the other side has told; one that is not known here is a plain one."""
    words = field_of(header, "message", str, "")[:MAX_REASON]
    kind = _KINDS.get(field_of(header, "error", str, ""), DivingbellError)
    if kind is RateExceeded:
        return RateExceeded(words, float(field_of(header, "retry_after", float, 0.0)))
    return kind(words)


_KINDS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, DivingbellError)
}
