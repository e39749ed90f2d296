"""What one user may have under way over HTTP, so that there is room for the others."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell import scale
from divingbell.scale import Scale
from divingbell.surfaces.mcp.connections import Connections

MAX_REQUESTS = 100
"""Requests of one user under way, streams among them."""
MAX_CONNECTIONS = 32
"""Sessions of the older protocol that one user may have: as many as sessions of ours."""
MAX_HELD = 64 << 20
"""Bytes of bodies, and of what parsing makes of them; a single one may take more."""


@dataclass(slots=True)
class _Share:
    requests: int = 0
    opening: int = 0
    held: int = 0


class _Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


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
        with ExitStack() as leaving:
            try:
                self._admit(scope, known, share, leaving.callback)
                body = _Body(receive, share)
                leaving.callback(body.forget)
                await self._app(scope, body.receive, send)
            except _Refused as refusal:
                await PlainTextResponse(str(refusal), refusal.status)(scope, receive, send)

    def _admit(
        self,
        scope: Scope,
        user: AuthenticatedUser | None,
        share: _Share,
        later: Callable[..., object],
    ) -> None:
        if share.requests >= MAX_REQUESTS:
            raise _Refused(429, f"you have {MAX_REQUESTS} requests under way: wait for one to end")
        share.requests += 1
        later(_leave, share)
        if user is None or not _opens_session(Headers(scope=scope)):
            return
        # The manager counts the sessions of all users together. It says nowhere whose they are.
        owner = authorization_context(user)
        owned = sum(other == owner for other in self._manager._session_owners.values())
        if owned + share.opening >= MAX_CONNECTIONS:
            raise _Refused(429, f"you have {MAX_CONNECTIONS} connections: end one (DELETE) first")
        share.opening += 1
        later(_open, share)


def _leave(share: _Share) -> None:
    share.requests -= 1


def _open(share: _Share) -> None:
    share.opening -= 1


def _opens_session(headers: Headers) -> bool:
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
    return MCP_SESSION_ID_HEADER not in headers and not modern


class _Body:
    """The body of a request, weighed as it comes. Its bytes are counted by the SDK as well."""

    def __init__(self, receive: Receive, share: _Share) -> None:
        self._receive = receive
        self._share = share
        self._scale = Scale()
        self._size = 0
        self._cost = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._take(message.get("body", b""))
        return message

    def forget(self) -> None:
        self._share.held -= self._cost

    def _take(self, piece: bytes) -> None:
        self._scale.add(piece)
        self._size += len(piece)
        if self._scale.weight > scale.MAX_ARGUMENTS:
            raise _Refused(413, "the request holds too many lists, objects and values")
        cost = self._size + self._scale.weight * scale.UNIT
        others = self._share.held - self._cost
        if others and others + cost > MAX_HELD:
            raise _Refused(429, "your requests are too large together: send fewer at once")
        self._share.held, self._cost = others + cost, cost
