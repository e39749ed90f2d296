"""Openings: the connections of the older protocol that one user may have."""

from collections import defaultdict

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_CONNECTIONS = 32
"""Sessions of the older protocol that one user may have: as many as sessions of ours."""


class Openings:
    """Lets each user open so many connections, and no more."""

    def __init__(self, app: ASGIApp, manager: StreamableHTTPSessionManager) -> None:
        self._app = app
        self._manager = manager
        self._opening: defaultdict[str, set[int]] = defaultdict(set)
        """By user, requests that may become a session of the older protocol."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) or not opens_connection(scope):
            await self._app(scope, receive, send)
            return
        opening = self._opening[user.username]
        # The manager counts the sessions of all users together. It says nowhere whose they are.
        owner = authorization_context(user)
        owned = sum(other == owner for other in self._manager._session_owners.values())
        if owned + len(opening) >= MAX_CONNECTIONS:
            words = f"you have {MAX_CONNECTIONS} connections: end one (DELETE) first"
            await PlainTextResponse(words, 429)(scope, receive, send)
            return
        opening.add(id(scope))

        async def opened(message: Message) -> None:
            opening.discard(id(scope))  # from its answer on it is among those that are owned
            await send(message)

        try:
            await self._app(scope, receive, opened)
        finally:
            opening.discard(id(scope))


def opens_connection(scope: Scope) -> bool:
    """Whether a request may open a connection of the older protocol."""
    headers = Headers(scope=scope)
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
    return MCP_SESSION_ID_HEADER not in headers and not modern
