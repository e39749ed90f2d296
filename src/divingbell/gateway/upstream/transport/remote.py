"""The connection to a server at an address: streamable HTTP, or SSE as older ones speak it."""

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from divingbell.gateway.schema.outcome import MAX_SIZE, TOO_LONG, TOO_MANY_VALUES, TOO_MUCH_AT_ONCE
from divingbell.gateway.upstream.transport.streams import ReadStream, Stream
from divingbell.gateway.upstream.transport.unanswered import Unanswered
from divingbell.settings.servers import Server
from divingbell.shares import weight
from divingbell.shares.allowance import RESULT
from divingbell.shares.weight import Scale

GiveUp = Callable[[str], None]

CONNECT_TIMEOUT = 30.0


@functools.cache
def _trust() -> ssl.SSLContext:
    """Return the trusted certificates, read once: it takes 30 ms, and there may be many servers."""
    return httpx2.create_ssl_context()


class AnswerTooLarge(httpx2.StreamError):
    """An answer is too large.

    The SDK makes a failed request of this one, where others would end the connection.
    """


class _CappedStream(httpx2.AsyncByteStream):
    """An answer that ends with an error before it gets too large, or too much to be parsed."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._size = 0
        self._scale = Scale()
        self._hold = RESULT.get()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._weigh(piece)
            yield piece

    def _weigh(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > MAX_SIZE:
            raise AnswerTooLarge(TOO_LONG)
        self._scale.add(piece)
        self._check(AnswerTooLarge)

    def _check(self, error: type[Exception]) -> None:
        if self._scale.weight > weight.MAX_RESULT:
            raise error(TOO_MANY_VALUES)
        cost = weight.cost(self._size, self._scale.weight)
        if self._hold is not None and not self._hold.grow(cost):
            raise error(TOO_MUCH_AT_ONCE)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _CappedEvents(_CappedStream):
    """A stream of events, each of which ends as above. The SDK caps the bytes of each event.

    Only data is parsed, so only data is weighed: a quote in a comment begins no text.
    """

    _DATA = b"data:"
    _field = b""
    """The line that has begun, as far as it tells data from all else."""
    _returned = False

    def _weigh(self, piece: bytes) -> None:
        if not piece:
            return
        rest = piece[1:] if self._returned and piece.startswith(b"\n") else piece
        self._returned = piece.endswith(b"\r")  # a line feed may still belong to it
        first, *others = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._add(first)
        for part in others:
            self._end_line()
            self._add(part)
        self._check(httpx2.SSEError)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        missing = len(self._DATA) - len(self._field)
        self._field += part[:missing]
        if self._field == self._DATA:
            self._scale.add(part[missing:])

    def _end_line(self) -> None:
        if not self._field and self._size > 0:  # an empty line ends an event
            self._check(httpx2.SSEError)
            self._size, self._scale = 0, Scale()
        elif self._field == self._DATA:
            self._scale.add(b"\n")
        self._field = b""


class CappedTransport(httpx2.AsyncHTTPTransport):
    """HTTP with a limit to each answer. Certificates are checked."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # A small compressed answer can become a huge one.
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed though it was not to be")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            # Events are UTF-8. Read as anything else, they would not be what was weighed.
            response.headers["content-type"] = kind
            response.stream = _CappedEvents(response.stream)
        else:
            response.stream = _CappedStream(response.stream)
        return response


class _Watched(ReadStream):
    """The SDK's stream of messages. It tells when it ends, and is ended where a server floods."""

    def __init__(
        self, stream: Any, over: asyncio.Event, unanswered: Unanswered, give_up: GiveUp
    ) -> None:
        self._stream = stream
        self._over = over
        self._unanswered = unanswered
        self._give_up = give_up

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            received = await self._stream.receive()
            reason = self._unanswered.count_received(getattr(received, "message", None))
            if reason is None:
                return received
            self._give_up(reason)
            raise anyio.EndOfStream
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._over.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Counted(Stream):
    """The SDK's stream to write to, which counts the answers that have gone out."""

    def __init__(self, stream: Any, unanswered: Unanswered) -> None:
        self._stream = stream
        self._unanswered = unanswered

    async def send(self, item: Any, /) -> None:
        await self._stream.send(item)
        self._unanswered.count_sent(getattr(item, "message", None))

    async def aclose(self) -> None:
        await self._stream.aclose()


class RemoteConnection:
    """One connection to a remote server: the streams for the SDK, and why it failed."""

    pid = None

    def __init__(self, server: Server, auth: httpx2.Auth | None = None) -> None:
        self._server = server
        self._auth = auth
        self._given_up: str | None = None
        self.status: int | None = None
        """The last HTTP status that was an error."""

    def give_up(self, reason: str) -> None:
        """Remember the reason; the connection itself is closed by its owner."""
        self._given_up = self._given_up or reason

    async def reason(self) -> str | None:
        """Return why the connection ended, if it is known here."""
        return self._given_up

    @contextlib.asynccontextmanager
    async def open(self, over: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
        """Connect, for as long as the block lasts; `over` is set when the other side ends it."""
        url = self._server.url
        assert url is not None
        if self._server.transport == "sse":
            async with sse_client(url, httpx_client_factory=self._client) as streams:
                yield self._ends(streams, over)
            return
        async with (
            self._client() as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_SIZE) as streams,
        ):
            yield self._ends(streams, over)

    def _ends(self, streams: Any, over: asyncio.Event) -> tuple[_Watched, _Counted]:
        unanswered = Unanswered()
        reading = _Watched(streams[0], over, unanswered, self.give_up)
        return reading, _Counted(streams[1], unanswered)

    def _client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=dict(self._server.headers),
            # How long an answer may take is the limit of the call.
            timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=None),
            transport=CappedTransport(verify=_trust(), limits=httpx2.Limits(max_connections=None)),
            auth=self._auth,
            follow_redirects=False,
            event_hooks={"response": [self._note]},
        )

    async def _note(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            self.status = response.status_code
