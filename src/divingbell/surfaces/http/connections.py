"""Connections over HTTP: how many may wait, and for how long, before they say who they are.

uvicorn waits for the rest of a request for ever, and its one limit on connections refuses the next
one, whoever it is. So half a request, sent often enough and without a token, would keep everybody
out.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from divingbell.shares.host_time import HostTime

HEAD_TIMEOUT = 10.0
"""Seconds from the connection, or from the last answer, until the headers have come."""
BODY_TIMEOUT = 60.0
"""Seconds from the headers until the body has come."""
REST_TIMEOUT = 5.0
"""Seconds that the rest of a body may still come after it was answered: a client that is cut off
while it sends does not read the answer."""
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


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether a line is for the log: not what strangers may have uvicorn write, as often as they
    like, and not the addresses of WebSockets, which may have a token in them."""
    message = str(record.msg)
    return message != "Invalid HTTP request received." and "WebSocket %s" not in message


class Connections:
    """The connections that serve nobody at the moment. When there are too many, the oldest one is
    closed.

    The oldest, and not the newest: a client sends its request at once, and is then no stranger.
    One that has served somebody goes only where there is no other.
    """

    def __init__(self) -> None:
        self._strangers: dict[Peer | None, Protocol] = {}
        self.host_time = HostTime(lambda seconds, times: None)
        """The share that all who have shown no token have together of answers."""

    def __len__(self) -> int:
        return len(self._strangers)

    def arrived(self, connection: "Protocol") -> None:
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


class Protocol(H11Protocol):
    """uvicorn's protocol, with an end to each wait for its peer. `app.door.connections` counts it.

    What it sends is read at the pace that its share of the host's processor time allows: also the
    rest of a body that was refused. Requests that came in one go with the one before wait for that
    pace as well; of them no more than `READ_SIZE` is there.
    """

    def __init__(self, config: Any, *arguments: Any, **more: Any) -> None:
        super().__init__(config, *arguments, **more)
        self._connections: Connections = config.app.door.connections
        self.known = False
        """Whether it has served somebody."""
        self._state: Any = None
        self._late: asyncio.TimerHandle | None = None
        self._host_time = HostTime(lambda seconds, times: None)
        self._resting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # asyncio's own
            transport.max_size = READ_SIZE
        self._connections.arrived(self)
        self._look()

    def data_received(self, data: bytes) -> None:
        began = time.thread_time()
        super().data_received(data)
        self._look()
        rest = self._host_time.charge(time.thread_time() - began)
        if rest and self._resting is None:
            self._rest(rest, self._end_rest)

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
        if not self.transport.is_closing():
            self._connections.arrived(self)
            self._look()

    def _rest(self, seconds: float, then: Callable[[], None]) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self.transport.pause_reading()
        self._resting = self.loop.call_later(seconds, then)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.left(self.client)
        self._wait(None)
        if self._resting is not None:
            self._resting.cancel()

    def _end_rest(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = None
        if not (self.flow.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def drop(self) -> None:
        """Close it; what was not sent yet is thrown away."""
        self.transport.abort()

    def _look(self) -> None:
        """Set the clock when a request gets to its next part: a byte now and then is no part."""
        answered = self.cycle is not None and self.cycle.response_complete
        state = (self.conn.their_state, answered)
        if state == self._state:
            return
        self._state = state
        if state[0] is h11.IDLE:
            self._wait(HEAD_TIMEOUT)
        elif state[0] is h11.SEND_BODY:
            self._wait(REST_TIMEOUT if answered else BODY_TIMEOUT)
        else:
            self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None if seconds is None else self.loop.call_later(seconds, self.drop)
