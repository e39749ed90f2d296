"""Quotas: the requests and bytes that one user may have under way, so that others have room."""

import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Scope, Send

from divingbell.session.calls import MAX_RESULTS
from divingbell.shares import weight
from divingbell.shares.allowance import Allowance, Hold, counted
from divingbell.shares.host_time import HostTime
from divingbell.shares.weight import Scale
from divingbell.surfaces.http.problems import AGAIN, Refused

MAX_REQUESTS = 100
"""Requests of one user under way, streams among them."""
MAX_HELD = 64 << 20
"""Bytes of bodies, and of what parsing makes of them; a single one may take more."""
MAX_BODY = 16 << 20
"""Bytes of a body that is parsed: as much as a cell may have."""
ANSWER_PIECE = 1 << 16
"""Bytes of an answer that are handed on at once. The next ones wait until the client has taken
these, so that a request is under way until its answer is sent."""
KEY = "divingbell.share"
"""Where the guard puts the share of a user into the scope of a request."""


class Gone(Exception):
    """Raised where a client left before its request was whole."""


@dataclass(slots=True)
class Share:
    """The requests and bytes that one user has under way."""

    requests: int = 0
    bodies: Allowance = field(default_factory=lambda: Allowance(MAX_HELD))
    results: Allowance = field(default_factory=lambda: Allowance(MAX_RESULTS))
    """Of tools that are called directly; those that code calls count for its session."""
    pace: HostTime = field(default_factory=lambda: HostTime(lambda seconds, times: None))
    """Of the host's processor time, for streams of events."""

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count a request until the end of the block.

        Raises:
            Refused: there are too many.
        """
        if self.requests >= MAX_REQUESTS:
            words = f"you have {MAX_REQUESTS} requests under way: wait for one to end"
            raise Refused(429, "too_many_requests", words).retry_after(AGAIN)
        self.requests += 1
        try:
            with counted(self.results):  # the SDK does what is asked for in the same context
                yield
        finally:
            self.requests -= 1


Shares = defaultdict[str, Share]


def shares() -> Shares:
    """Return the shares of all users; there are as many as have tokens."""
    return defaultdict(Share)


def share_of(scope: Scope) -> Share:
    """Return the share that a request counts against."""
    share: Share = scope[KEY]
    return share


def in_pieces(send: Send) -> Send:
    """Return what sends a long answer piece by piece, at the pace of the client."""

    def sent(message: Message) -> Awaitable[None]:
        is_long = len(message.get("body", b"")) > ANSWER_PIECE
        if is_long and message["type"] == "http.response.body":
            return _send_pieces(send, message)
        return send(message)

    return sent


async def _send_pieces(send: Send, message: Message) -> None:
    body = message["body"]
    for start in range(0, len(body), ANSWER_PIECE):
        piece = body[start : start + ANSWER_PIECE]
        await send({"type": message["type"], "body": piece, "more_body": True})
    await send({**message, "body": b""})  # waits for the last piece


class Body:
    """The body of a request that will be parsed, weighed as it comes. `most` is the most bytes that
    it may have, `why` is said where it has more."""

    def __init__(
        self, receive: Receive, allowance: Allowance, most: int = MAX_BODY, why: str = ""
    ) -> None:
        self._receive = receive
        self._most = most
        self._why = why or f"a body may have {most:,} bytes at most: send less at once"
        self._hold = Hold(allowance)
        self._scale = Scale()
        self._size = 0
        self._whole = False

    async def receive(self) -> Message:
        """Return the next part.

        Raises:
            Refused: it is too large, or too heavy.
            Gone: the client has left.
        """
        message = await self._receive()
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            self._take(message.get("body", b""))
        elif not self._whole:
            raise Gone
        return message

    async def read(self) -> bytes:
        """Return all of it. Raises what `receive` does."""
        parts = []
        while not self._whole:
            parts.append((await self.receive())["body"])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes, about: as it came, and parsed."""
        return self._size + self._scale.weight * weight.UNIT

    def close(self) -> None:
        self._hold.close()

    def _take(self, piece: bytes) -> None:
        self._scale.add(piece)
        self._size += len(piece)
        if self._size > self._most:
            raise Refused(413, "too_large", self._why)
        if self._scale.weight > weight.MAX_ARGUMENTS:
            words = "the request holds too many lists, objects and values"
            raise Refused(413, "too_large", words)
        if not self._hold.grow(self.cost):
            words = "your requests are too large together: send fewer at once"
            raise Refused(429, "too_many_requests", words).retry_after(AGAIN)
