"""Connections over HTTP: how many may wait, and for how long, before they say who they are.

uvicorn waits for the rest of a request for ever, and its one limit on connections refuses the next
one, whoever it is. So half a request, sent often enough and without a token, would keep everybody
out.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Literal
from typing import Protocol as Interface

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from divingbell.shares.host_time import HostTime
from divingbell.surfaces.http.outgoing import Gathered, Outgoing

HEAD_TIMEOUT = 10.0
"""Seconds from the connection, or from the last answer, until the headers have come."""
BODY_TIMEOUT = 60.0
"""Seconds in which `BODY_PIECE` bytes of a body must come, or the rest of it."""
BODY_PIECE = 1 << 16
WRITE_TIMEOUT = 60.0
"""Seconds in which a client must take something of what waits for it."""
REST_TIMEOUT = 5.0
"""Seconds that the rest of a body may still come after it was answered: a client that is cut off
while it sends does not read the answer."""
MAX_HEAD = 1 << 14
"""Bytes of a request's line and headers, and of what stands between two parts of its body."""
READ_SIZE = 1 << 16
"""Bytes in a row, then others have their turn. asyncio would take four times as much, and reading
that in takes as long as a neighbour's whole cell."""
ANSWER = 0.0005
"""Seconds of processor time that a request and its answer are taken to cost, beside reading it
in."""
MAX_STRANGERS = 256
"""Connections that serve nobody: those that have not shown a token, and those that are idle."""
MAX_OF_PEER = 64
"""Of these, from one address."""

Peer = tuple[str, int]
Part = Literal["head", "body", "answer"]
"""The part of a request that is waited for."""
_HEAD_ENDS = b"\r\n\r\n"
_VERSIONS = frozenset({"1.0", "1.1"})
_OF_STRANGERS = frozenset({"Invalid HTTP request received.", "Unsupported upgrade request."})


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether a line is for the log: not what strangers may have uvicorn write, as often as they
    like, and not the addresses of WebSockets, which may have a token in them."""
    message = str(record.msg)
    return message not in _OF_STRANGERS and "WebSocket %s" not in message


class Stranger(Interface):
    """A connection that serves nobody yet."""

    client: Peer | None
    known: bool

    def drop(self) -> None:
        """Close it at once."""


class Connections:
    """The connections that serve nobody at the moment. When there are too many, the oldest one is
    closed.

    The oldest, and not the newest: a client sends its request at once, and is then no stranger.
    One that has served somebody goes only where there is no other.
    """

    def __init__(self) -> None:
        self._strangers: dict[Peer | None, Stranger] = {}
        self.host_time = HostTime(lambda seconds, times: None)
        """The share that all who have shown no token have together of answers."""

    def __len__(self) -> int:
        return len(self._strangers)

    def arrived(self, connection: Stranger) -> None:
        """Count a connection, which serves nobody from now on."""
        self._strangers[connection.client] = connection
        host = connection.client and connection.client[0]
        alike = [peer for peer in self._strangers if (peer and peer[0]) == host]
        if len(alike) > MAX_OF_PEER:
            self._drop_one(alike)
        elif len(self._strangers) > MAX_STRANGERS:
            self._drop_one(list(self._strangers))

    def _drop_one(self, peers: list[Peer | None]) -> None:
        older = peers[:-1]
        unknown = (peer for peer in older if not self._strangers[peer].known)
        self._strangers.pop(next(unknown, peers[0])).drop()

    def left(self, peer: Peer | None) -> None:
        """Count a connection no more: it is gone, or serves somebody whom we know."""
        connection = self._strangers.pop(peer, None)
        if connection is not None:
            connection.known = True


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with an end to each wait for its peer. `app.door.connections` counts it.

    What it sends is read at the pace that its share of the host's processor time allows: also the
    rest of a body that was refused. One request is parsed at a time: uvicorn would begin the next
    one, and no longer tell the first one that its client has left. What came in one go with a
    request waits for its answer; of that no more than twice `READ_SIZE` is there.
    """

    def __init__(self, config: Any, *arguments: Any, **more: Any) -> None:
        super().__init__(config, *arguments, **more)
        self._connections: Connections = config.app.door.connections
        self.known = False
        """Whether it has served somebody."""
        self._part: Part = "head"
        self._tail = b""
        """The end of a head that is not whole yet."""
        self._body_left: int | None = None
        """Bytes of the body that are to come; None where it says so itself, chunk by chunk."""
        self._since_clock = 0
        """Bytes of the body since the clock was set."""
        self._parts = 0
        self._barren = 0
        """Bytes in a row that were no part of anything: of headers without an end."""
        self._ahead = b""
        """What has come behind the request that is answered now."""
        self._late: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._untaken: asyncio.TimerHandle | None = None
        self._host_time = HostTime(lambda seconds, times: None)
        self._resting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # asyncio's own
            transport.max_size = READ_SIZE
        self._outgoing = Outgoing(transport, self.loop)
        self._connections.arrived(self)
        self._wait(HEAD_TIMEOUT)

    def data_received(self, data: bytes) -> None:
        began = time.thread_time()
        self._take(data)
        rest = self._host_time.charge(time.thread_time() - began)
        if rest and self._resting is None:
            self._rest(rest, self._end_rest)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.left(self.client)
        self._wait(None)
        for timer in (self._late, self._resting, self._untaken):
            if timer is not None:
                timer.cancel()

    def drop(self) -> None:
        """Close it; what was not sent yet is thrown away."""
        self.transport.abort()

    # Reading

    def _take(self, data: bytes) -> None:
        """Parse what belongs to the request that is waited for; keep what comes behind it."""
        while data and not self.transport.is_closing():
            if self._part == "answer":
                self._ahead += data
                self.transport.pause_reading()
                return
            size = self._size_of_part(data)
            self._feed(data[:size])
            data = data[size:]

    def _size_of_part(self, data: bytes) -> int:
        if self._part == "body":
            return len(data) if self._body_left is None else min(self._body_left, len(data))
        looked_at = self._tail + data[:MAX_HEAD]
        found = looked_at.find(_HEAD_ENDS)
        if found < 0:
            self._tail = looked_at[1 - len(_HEAD_ENDS) :]
            return min(len(data), MAX_HEAD)
        size = found + len(_HEAD_ENDS) - len(self._tail)
        self._tail = b""
        return size

    def _feed(self, data: bytes) -> None:
        before = self._parts
        super().data_received(data)
        self._barren = 0 if self._parts > before else self._barren + len(data)
        if self._barren > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response("the headers are too long")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request; where an answer is under way already, there is no other."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.drop()
            return
        super().send_400_response(msg)
        self._wait(REST_TIMEOUT)

    def on_message_begin(self) -> None:
        if self._part != "head":
            raise ValueError("a request has come behind a body in chunks, before its answer")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part == "head":  # those behind a body would change what the guard has seen
            super().on_header(name, value.rstrip(b" \t"))  # blanks at the end are no part of it

    def on_headers_complete(self) -> None:
        if self.parser.get_http_version() not in _VERSIONS or not self.url.startswith(b"/"):
            raise ValueError("neither HTTP/1.0 nor HTTP/1.1, or no path")
        self._parts += 1
        self._part, self._since_clock = "body", 0
        lengths = [value for name, value in self.headers if name == b"content-length"]
        self._body_left = int(lengths[0]) if lengths else None
        super().on_headers_complete()
        if self.cycle is not None:
            self._outgoing.begin()
            self.cycle.transport = self._outgoing
        if self.expect_100_continue:
            # One who is refused may send the body or not: nobody knows where the next one begins.
            self.cycle.keep_alive = False
        self._wait(BODY_TIMEOUT)

    def on_body(self, body: bytes) -> None:
        self._parts += 1
        if self._body_left is not None:
            self._body_left -= len(body)
        self._since_clock += len(body)
        if self._since_clock >= BODY_PIECE and not self.cycle.response_complete:
            self._since_clock = 0
            self._wait(BODY_TIMEOUT)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._parts += 1
        self._wait(None)
        self._part = "answer"
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._next_request()

    def handle_websocket_upgrade(self) -> None:
        self._wait(None)
        gathered: Any = Gathered(self.transport, self.loop)
        self.transport = gathered
        super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer, and no more: what comes behind it may be in another protocol."""
        self.cycle.keep_alive = False

    # Answering

    def on_response_complete(self) -> None:
        account = self._host_time if self.known else self._connections.host_time
        rest = account.charge(ANSWER)
        if self._resting is not None:
            rest = max(rest, self._resting.when() - self.loop.time())
        if rest > 0 and not self.transport.is_closing():
            self._rest(rest, self._go_on)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Take the next request: one that has come already, or one that is yet to come."""
        self._end_rest()
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait(REST_TIMEOUT)
            return
        self._connections.arrived(self)
        if self._part == "answer":
            self._next_request()
        else:
            self._wait(REST_TIMEOUT)
        ahead, self._ahead = self._ahead, b""
        self._take(ahead)

    def _next_request(self) -> None:
        self._part = "head"
        self._wait(HEAD_TIMEOUT)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._untaken is not None:
            self._untaken.cancel()
        self._untaken = None

    def _watch_writing(self, before: int | None = None) -> None:
        """Drop a client that takes nothing of what is sent to it."""
        size = self.transport.get_write_buffer_size()
        if before is not None and size >= before:
            self.drop()
            return
        self._untaken = self.loop.call_later(WRITE_TIMEOUT, self._watch_writing, size)

    # Pauses and clocks

    def _rest(self, seconds: float, then: Callable[[], None]) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self.transport.pause_reading()
        self._resting = self.loop.call_later(seconds, then)

    def _end_rest(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = None
        if not (self.flow.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def _wait(self, seconds: float | None) -> None:
        """Set the clock. Its timer stays while it is not too late: a request sets it four times."""
        self._deadline = None if seconds is None else self.loop.time() + seconds
        if self._deadline is None:
            return
        if self._late is not None and self._late.when() > self._deadline:
            self._late.cancel()
            self._late = None
        if self._late is None:
            self._late = self.loop.call_at(self._deadline, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._late = None
        if self._deadline is None:
            return
        if self.loop.time() < self._deadline:
            self._late = self.loop.call_at(self._deadline, self._look_at_clock)
        else:
            self._be_late()

    def _be_late(self) -> None:
        if self._part == "body" and (self.flow.read_paused or self._resting is not None):
            self._wait(BODY_TIMEOUT)  # it is we who do not read
            return
        self.drop()
