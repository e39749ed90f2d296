"""Messages of a stdio server, out of its pipe: cut, weighed, and parsed when they are read."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable
from typing import cast
from weakref import WeakValueDictionary

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from divingbell.gateway.schema.outcome import MAX_SIZE, TOO_LONG, TOO_MANY_VALUES, TOO_MUCH_AT_ONCE
from divingbell.gateway.upstream.transport.streams import ReadStream
from divingbell.gateway.upstream.transport.unanswered import TOO_LARGE, Unanswered
from divingbell.shares import weight
from divingbell.shares.allowance import RESULT, Hold
from divingbell.shares.collector import COLLECTOR
from divingbell.shares.weight import Scale

MAX_SKIPPED = 256 << 20
"""Bytes of a message that is passed over because it is too long; after more the server is ended."""
LARGE_LINE = 1 << 16
"""Bytes; a longer one is parsed in a thread. None that is shorter can be too heavy."""
MAX_INVALID = 100
"""Lines that are no messages, before the connection is given up."""
NO_MESSAGES = f"it sent more than {MAX_INVALID} lines that are no messages of MCP"
MAX_UNASKED = 1 << 20
"""Bytes of memory (see `weight.cost`) of a message with no number, so of one nobody has asked for:
the log line of half a megabyte is the longest."""
MAX_QUEUE = 64
MAX_ENDS = 200
MAX_QUOTED = 4096
"""Bytes that are kept of what a server has printed that is no message."""
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb',\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST = re.compile(rb'[,{]\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*' + _VERSION + rb")?\}\s*$")


class Messages(ReadStream):
    """The messages of a server, one by one: the end of the connection that the SDK reads."""

    def __init__(
        self, over: asyncio.Event, unanswered: Unanswered, give_up: Callable[[str], None]
    ) -> None:
        self._over = over
        self._unanswered = unanswered
        self._give_up = give_up
        self._queue: deque[bytes | mcp_types.JSONRPCError] = deque()
        self._bytes = 0
        self._holds: WeakValueDictionary[int | str, Hold] = WeakValueDictionary()
        self._invalid = 0
        self._last_asked = -1
        self.first_invalid = b""
        """The beginning of the first line since the last message that is none."""
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self.pipe: asyncio.ReadTransport | None = None

    def expect(self, number: int | str) -> None:
        """Note the number of a request; its answer counts against whoever makes it."""
        if isinstance(number, int):
            self._last_asked = max(self._last_asked, number)
        hold = RESULT.get()
        if hold is not None:
            self._holds[number] = hold

    def put(self, line: bytes, units: int) -> None:
        """Take a line, or put an error in the place of an answer that is too large."""
        if self._ended:
            return
        number, cost = None, weight.cost(len(line), units)
        if len(line) > LARGE_LINE:
            number = _number_of(line)
            if number is None and cost > MAX_UNASKED:
                return self.note_invalid(line) if _is_no_message(line) else self.stop(TOO_LARGE)
        hold = None if number is None else self._holds.get(number)
        if number is not None and units > weight.MAX_RESULT:
            self._add(_error(number, mcp_types.PARSE_ERROR, TOO_MANY_VALUES))
        elif number is not None and hold is not None and not hold.grow(cost):
            self._add(_error(number, mcp_types.PARSE_ERROR, TOO_MUCH_AT_ONCE))
        else:
            self._add(line)

    def pass_over(self, ends: bytes) -> None:
        """Answer for a line that was too long to be kept; of its two ends one has its number."""
        if self._ended:
            return
        number = _number_of(ends)
        if number is not None and number <= self._last_asked:
            self._add(_error(number, mcp_types.PARSE_ERROR, TOO_LONG))
        elif number is None and _is_no_message(ends):
            self.note_invalid(ends)
        else:
            self.stop(f"it sent a message of more than {MAX_SIZE >> 20} MB that nobody asked for")

    def _add(self, line: bytes | mcp_types.JSONRPCError) -> None:
        self._queue.append(line)
        self._bytes += len(line) if isinstance(line, bytes) else 0
        if self.pipe is not None and (len(self._queue) >= MAX_QUEUE or self._bytes >= MAX_SIZE):
            self.pipe.pause_reading()
        self._wake()

    def end(self) -> None:
        """End it; what has come can still be read."""
        self._ended = True
        self._over.set()
        self._wake()

    def stop(self, reason: str) -> None:
        """End it for a reason; what has come and was not read yet is thrown away."""
        self._queue.clear()
        self._give_up(reason)
        self.end()

    def note_invalid(self, line: bytes) -> None:
        """Count a line that is no message: many a server prints a greeting first."""
        self.first_invalid = self.first_invalid or line[:MAX_QUOTED]
        self._invalid += 1
        if self._invalid > MAX_INVALID:
            self.stop(NO_MESSAGES)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> SessionMessage:
        while True:
            item = await self._next()
            large = isinstance(item, bytes) and len(item) > LARGE_LINE
            found = await self._parse(item) if isinstance(item, bytes) else item
            if found is None:
                assert isinstance(item, bytes)
                self.note_invalid(item)
            elif isinstance(item, bytes) and large and not _is_of(found, _number_of(item)):
                self.stop("it sent a message with two ids")
            elif (reason := self._unanswered.count_received(found)) is not None:
                self.stop(reason)
            else:
                self.first_invalid = b""
                return SessionMessage(found)

    async def _parse(self, line: bytes) -> mcp_types.JSONRPCMessage | None:
        """Parse a line; the time that it takes is charged to whoever waits for it."""
        number = _number_of(line)
        hold = None if number is None else self._holds.get(number)
        charge = weight.charge_nobody if hold is None else hold.charge
        if len(line) > LARGE_LINE:
            return await weight.charged(lambda: COLLECTOR.at_rest(lambda: _parsed(line)), charge)
        return weight.timed(lambda: _parsed(line), charge)

    async def _next(self) -> bytes | mcp_types.JSONRPCError:
        while not self._queue:
            if self._ended:
                raise anyio.EndOfStream
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        item = self._queue.popleft()
        self._bytes -= len(item) if isinstance(item, bytes) else 0
        if not self._queue and self.pipe is not None and not self.pipe.is_closing():
            self.pipe.resume_reading()
        return item

    async def aclose(self) -> None:
        self.end()


class Output(asyncio.Protocol):
    """Cuts the server's output into lines, and weighs them as they come."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""
        """The end of a line that is too long to be kept, as far as it has come."""
        self._scale = Scale()
        self._over = False
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._messages.pipe = cast(
            asyncio.ReadTransport, transport
        )  # uvloop's is none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._add(first)
        for part in others:
            self._line()
            self._add(part)

    def connection_lost(self, error: Exception | None) -> None:
        self._messages.end()
        if not self.closed.done():
            self.closed.set_result(None)

    def discard(self) -> None:
        """Throw away what still comes."""
        self._over = True
        self._parts = []

    def _add(self, part: bytes) -> None:
        if self._over or not part:
            return
        self._size += len(part)
        if self._size <= MAX_SIZE:
            self._parts.append(part)
            if self._scale.weight <= weight.MAX_RESULT:
                self._scale.add(part)
        elif self._size <= MAX_SKIPPED:
            # Whoever waits for it is told, and all others go on: only its two ends are kept.
            self._parts = [b"".join(self._parts)[:MAX_ENDS]]
            self._tail = (self._tail + part)[-MAX_ENDS:]
        else:
            self.discard()
            self._messages.stop(f"it sent a message of more than {MAX_SKIPPED >> 20} MB")

    def _line(self) -> None:
        line, weight, tail = b"".join(self._parts), self._scale.weight, self._tail
        too_long = self._size > MAX_SIZE
        self._parts, self._size, self._tail, self._scale = [], 0, b"", Scale()
        if self._over or not line.strip():
            return
        if too_long:
            self._messages.pass_over(line + tail)
        else:
            self._messages.put(line, weight)


def _parsed(line: bytes) -> mcp_types.JSONRPCMessage | None:
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _failed_answer(line)


def _failed_answer(line: bytes) -> mcp_types.JSONRPCError | None:
    """Return an error in the place of an answer that is none: whoever waits for it is to know."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or "method" in found or "id" not in found:
        return None
    number = found["id"]
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    return _error(
        number,
        mcp_types.INTERNAL_ERROR,
        "it answered with something that is neither a result nor an error",
    )


def _is_no_message(line: bytes) -> bool:
    """Whether a line can be passed over unparsed: a message is an object."""
    return line[:MAX_ENDS].lstrip()[:1] not in (b"{", b"")


def _number_of(line: bytes) -> int | None:
    """The number of an answer that is not parsed: it stands at one end of it."""
    found = _FIRST.match(line[:MAX_ENDS]) or _LAST.search(line[-MAX_ENDS:])
    return None if found is None else int(found[1])


def _is_of(message: mcp_types.JSONRPCMessage, number: int | None) -> bool:
    """Whether a message has the number that it was counted under before it was parsed."""
    return number is None or getattr(message, "id", number) == number


def _error(number: int | str, code: int, words: str) -> mcp_types.JSONRPCError:
    error = mcp_types.ErrorData(code=code, message=words)
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
