"""Quotas: the requests that one user may have under way over HTTP, so that others have room."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell.session.calls import MAX_RESULTS
from divingbell.shares import weight
from divingbell.shares.allowance import Allowance, Hold, counted
from divingbell.shares.weight import Scale
from divingbell.surfaces.mcp.connections import Connections
from divingbell.surfaces.mcp.limits import MAX_OPENING

MAX_REQUESTS = 100
"""Requests of one user under way, streams among them."""
MAX_CONNECTIONS = 32
"""Sessions of the older protocol that one user may have: as many as sessions of ours."""
MAX_HELD = 64 << 20
"""Bytes of bodies, and of what parsing makes of them; a single one may take more."""


ANSWER_PIECE = 1 << 16
"""Bytes of an answer that are handed on at once. The next ones wait until the client has taken
these, so that a request is under way until its answer is sent."""


class _Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class _Gone(Exception):
    """Raised where a client left before its request was whole. The SDK would log a traceback."""


@dataclass(slots=True)
class _Share:
    """The requests, connections and bytes that one user has under way."""

    requests: int = 0
    opening: set[int] = field(default_factory=set)
    """Requests that may become a session of the older protocol."""
    bodies: Allowance = field(default_factory=lambda: Allowance(MAX_HELD))
    results: Allowance = field(default_factory=lambda: Allowance(MAX_RESULTS))
    """Of tools that are called directly; those that code calls count for its session."""

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        if self.requests >= MAX_REQUESTS:
            raise _Refused(429, f"you have {MAX_REQUESTS} requests under way: wait for one to end")
        self.requests += 1
        try:
            with counted(self.results):  # the SDK does what is asked for in the same context
                yield
        finally:
            self.requests -= 1


class Admission:
    """Lets requests of users whom we know in, each user's within bounds."""

    def __init__(
        self, app: ASGIApp, manager: StreamableHTTPSessionManager, connections: Connections
    ) -> None:
        self._app = app
        self._manager = manager
        self._connections = connections
        self._shares: defaultdict[str | None, _Share] = defaultdict(_Share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        known = user if isinstance(user, AuthenticatedUser) else None
        share = self._shares[None if known is None else known.username]
        self._connections.left(scope.get("client"))
        send = _in_pieces(send)
        opens = _opens_session(Headers(scope=scope))
        counted_body = _Body(receive, share.bodies, MAX_OPENING if opens else None)
        try:
            with share.request(), contextlib.closing(counted_body) as body:
                if known is None or not opens:
                    await self._app(scope, body.receive, send)
                else:
                    await self._open(known, share, scope, body.receive, send)
        except _Refused as refusal:
            await PlainTextResponse(str(refusal), refusal.status)(scope, receive, send)
        except _Gone:
            return

    async def _open(
        self, user: AuthenticatedUser, share: _Share, scope: Scope, receive: Receive, send: Send
    ) -> None:
        # The manager counts the sessions of all users together. It says nowhere whose they are.
        owner = authorization_context(user)
        owned = sum(other == owner for other in self._manager._session_owners.values())
        if owned + len(share.opening) >= MAX_CONNECTIONS:
            raise _Refused(429, f"you have {MAX_CONNECTIONS} connections: end one (DELETE) first")
        share.opening.add(id(scope))

        async def opened(message: Message) -> None:
            share.opening.discard(id(scope))  # from its answer on it is among those that are owned
            await send(message)

        try:
            await self._app(scope, receive, opened)
        finally:
            share.opening.discard(id(scope))


def _opens_session(headers: Headers) -> bool:
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
    return MCP_SESSION_ID_HEADER not in headers and not modern


def _in_pieces(send: Send) -> Send:
    async def sent(message: Message) -> None:
        body = message.get("body", b"")
        if message["type"] != "http.response.body" or len(body) <= ANSWER_PIECE:
            return await send(message)
        for start in range(0, len(body), ANSWER_PIECE):
            piece = body[start : start + ANSWER_PIECE]
            await send({"type": message["type"], "body": piece, "more_body": True})
        await send({**message, "body": b""})  # waits for the last piece

    return sent


class _Body:
    """The body of a request, weighed as it comes. Its bytes are counted by the SDK as well; `most`
    is a lower limit of them, if there is one."""

    def __init__(self, receive: Receive, allowance: Allowance, most: int | None) -> None:
        self._receive = receive
        self._most = most
        self._hold = Hold(allowance)
        self._scale = Scale()
        self._size = 0
        self._whole = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            self._take(message.get("body", b""))
        elif not self._whole:
            raise _Gone
        return message

    def close(self) -> None:
        self._hold.close()

    def _take(self, piece: bytes) -> None:
        self._scale.add(piece)
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise _Refused(
                413,
                f"a request that opens a connection may have {self._most:,} bytes at most: send "
                "less about the client, or name your connection (Mcp-Session-Id)",
            )
        if self._scale.weight > weight.MAX_ARGUMENTS:
            raise _Refused(413, "the request holds too many lists, objects and values")
        if not self._hold.grow(self._size + self._scale.weight * weight.UNIT):
            raise _Refused(429, "your requests are too large together: send fewer at once")
