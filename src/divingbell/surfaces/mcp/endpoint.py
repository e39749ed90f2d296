"""The MCP server over streamable HTTP: one endpoint of an application, behind its guard.

The guard has found out who comes: `scope["user"]` is what the SDK expects there.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell.app import Divingbell
from divingbell.surfaces.mcp.execution import Turn
from divingbell.surfaces.mcp.openings import MAX_CONNECTIONS, Openings
from divingbell.surfaces.mcp.replicas import Replicas
from divingbell.surfaces.mcp.server import Surface

PATH = "/mcp"
MAX_BODY = 16 << 20
"""Bytes of a request: as much as a cell may have."""
MANY = 100
"""Users that may get a token while the server runs."""
_OTHERS_LOOK = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The guard has compared Host and Origin, for all routes."""


def user_for_sdk(name: str) -> AuthenticatedUser:
    """Return a user as the SDK knows them. The token is left out: nobody needs it from here on."""
    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))


class Endpoint:
    """What answers at `/mcp`; within `running` it can be called."""

    def __init__(self, manager: StreamableHTTPSessionManager, surface: Surface | None) -> None:
        self._manager = manager
        self.surface = surface
        inner: ASGIApp = StreamableHTTPASGIApp(manager)
        if surface is not None:
            inner = _Endings(inner, surface)
        self._app = AuthContextMiddleware(Openings(inner, manager))

    @classmethod
    def of(
        cls, bell: Divingbell, users: int, turn: Turn, replicas: Replicas | None = None
    ) -> "Endpoint":
        """Return the endpoint of a Divingbell that so many users have tokens for. `turn` is what
        cells wait for before they run."""
        surface = Surface(bell, turn, replicas)
        manager = StreamableHTTPSessionManager(
            surface.server,
            security_settings=_OTHERS_LOOK,
            session_idle_timeout=bell.settings.idle_timeout,
            max_request_body_size=MAX_BODY,
            # What each user may have has a limit of its own, so that nobody meets this one.
            max_sessions=max(bell.settings.max_sessions, MAX_CONNECTIONS * max(users, MANY)),
        )
        return cls(manager, surface)

    @classmethod
    def of_server(cls, server: Server[Any]) -> "Endpoint":
        """Return the endpoint of any server that keeps nothing for its clients."""
        manager = StreamableHTTPSessionManager(
            server, security_settings=_OTHERS_LOOK, max_request_body_size=MAX_BODY
        )
        return cls(manager, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve; at the end close all that clients had."""
        try:
            async with self._manager.run():
                yield
        finally:
            if self.surface is not None:
                await self.surface.close()


class _Endings:
    """Ends what a client of the older protocol had, when it ends its session."""

    def __init__(self, app: ASGIApp, surface: Surface) -> None:
        self._app = app
        self._surface = surface

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "DELETE":
            await self._app(scope, receive, send)
            return
        ended = False

        async def watch(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                # The SDK lets only its owner end a session.
                ended = message["status"] < 300
            await send(message)

        await self._app(scope, receive, watch)
        connection = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if ended and connection:
            await self._surface.leave(connection)
