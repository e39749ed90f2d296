"""Listening: the socket that clients come to, and the server that answers them."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.surfaces.http import tls
from divingbell.surfaces.http.certificate import Certificate
from divingbell.surfaces.http.connections import Protocol, is_worth_a_line
from divingbell.surfaces.http.jupyter.connection import MAX_FRAME

SHUTDOWN_TIMEOUT = 2
"""Seconds that streams which are open are given when it ends."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: they are the command's own business."""
        yield


async def serve(
    app: Any,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    certificate: Certificate | None = None,
) -> None:
    """Serve until cancelled, over TLS where there is a certificate; `ready` is called once clients
    are answered. Then what runs is given its time, unless it is cancelled again."""
    if certificate is None:
        await _serve(app, listener, ready, Protocol)
        return
    async with certificate.followed():
        await _serve(app, listener, ready, tls.over(certificate.context))


async def _serve(
    app: Any, listener: socket.socket, ready: Callable[[], None], protocol: Any
) -> None:
    logs.logger("uvicorn.error").addFilter(is_worth_a_line)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=MAX_FRAME,
        ws_per_message_deflate=False,  # memory and time for each connection, on one machine mostly
        interface="asgi3",
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
    except asyncio.CancelledError:
        # Those who ask meanwhile are still answered, if only that it ends.
        try:
            await app.drain()
        except asyncio.CancelledError:
            server.force_exit = True
        raise
    finally:
        server.should_exit = True
        await asyncio.wait([serving])
