"""The MCP server over streamable HTTP: many clients, each with a token."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell import logs
from divingbell.app import Divingbell
from divingbell.errors import ConfigError
from divingbell.surfaces.auth import Tokens
from divingbell.surfaces.mcp.connections import Connections, Protocol, is_worth_a_line
from divingbell.surfaces.mcp.quotas import MAX_CONNECTIONS, Admission
from divingbell.surfaces.mcp.server import Surface

PATH = "/mcp"
MAX_BODY = 16 << 20
"""Bytes of a request: as much as a cell may have."""
SHUTDOWN_TIMEOUT = 2
"""Seconds that streams which are open are given when it ends."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def application(bell: Divingbell, tokens: Tokens | None, hosts: tuple[str, ...] = ()) -> Starlette:
    """Return the application, for uvicorn or to be mounted in another one.

    Without tokens everybody is let in. `hosts` are the names under which it may be spoken to,
    besides those of this machine: a web page that has its own name point here is refused.
    """
    surface = Surface(bell)
    manager = StreamableHTTPSessionManager(
        surface.server,
        security_settings=_security(hosts),
        session_idle_timeout=bell.settings.idle_timeout,
        max_request_body_size=MAX_BODY,
        # What each user may have has a limit of its own, so that nobody meets this one.
        max_sessions=max(bell.settings.max_sessions, MAX_CONNECTIONS * len(tokens or ())),
    )
    return _guarded(manager, lambda app: _Endings(app, surface), tokens, surface.close)


def application_of(
    server: Server[Any], tokens: Tokens | None, hosts: tuple[str, ...] = ()
) -> Starlette:
    """Return the application of any server that keeps nothing for its clients."""
    manager = StreamableHTTPSessionManager(
        server, security_settings=_security(hosts), max_request_body_size=MAX_BODY
    )

    async def closed() -> None:
        """There is nothing to close."""

    return _guarded(manager, lambda app: app, tokens, closed)


def _security(hosts: tuple[str, ...]) -> TransportSecuritySettings:
    names = (*LOOPBACK, *hosts)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{name}{port}"
            for name in names
            for scheme in ("http", "https")
            for port in ("", ":*")
        ],
    )


def _guarded(
    manager: StreamableHTTPSessionManager,
    around: Callable[[ASGIApp], ASGIApp],
    tokens: Tokens | None,
    close: Callable[[], Awaitable[None]],
) -> Starlette:
    """Return the application of a manager, which lets those in who have a token."""
    connections = Connections()
    inner: ASGIApp = Admission(around(StreamableHTTPASGIApp(manager)), manager, connections)
    middleware: list[Middleware] = []
    if tokens is not None:
        inner = RequireAuthMiddleware(inner, [])
        middleware = [
            Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(tokens)),
            Middleware(AuthContextMiddleware),
        ]

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            async with manager.run():
                yield
        finally:
            await close()

    app = Starlette(routes=[Route(PATH, inner)], middleware=middleware, lifespan=lifespan)
    app.state.connections = connections
    return app


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


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: they are the command's own business."""
        yield


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 takes one that is free.

    Raises:
        ConfigError: it can't be had.
    """
    plain = host.strip("[]")
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    # Without the protocol's name asyncio does not know it for TCP, and leaves Nagle's algorithm on:
    # an answer in two pieces then waits for the client's delayed acknowledgement, 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((plain, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise ConfigError(
            f"{host}:{port} can't be listened at: {reason}; choose another --host or --port"
        ) from None
    return listener


async def serve(
    app: Starlette, listener: socket.socket, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until cancelled; `ready` is called once clients are answered."""
    logs.logger("uvicorn.error").addFilter(is_worth_a_line)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        proxy_headers=False,  # who is at the other end is told by the socket, not by a header
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        # uvicorn has no event for it
        while not server.started and not serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait([serving])
