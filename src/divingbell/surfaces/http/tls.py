"""TLS on the connections of clients, which count as strangers until they have agreed on it."""

import ssl
import time
from asyncio import AbstractEventLoop, Transport, get_running_loop
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.utils import get_remote_addr

from divingbell.surfaces.http.connections import (
    HEAD_TIMEOUT,
    READ_SIZE,
    Connections,
    Peer,
    Protocol,
)


def over(context: ssl.SSLContext) -> Callable[..., "Agreement"]:
    """Return what makes the protocol of a connection, as uvicorn asks for it."""

    def make(config: Any, _loop: AbstractEventLoop | None = None, **more: Any) -> Agreement:
        loop = _loop or get_running_loop()
        inner = Protocol(config, _loop=loop, **more)
        return Agreement(loop, inner, context, config.app.door.connections)

    return make


class Agreement(SSLProtocol):
    """asyncio's TLS, counted from the first byte on: it would wait for strangers without end, and
    work for them as fast as they ask."""

    max_size = READ_SIZE

    def __init__(
        self,
        loop: AbstractEventLoop,
        inner: Protocol,
        context: ssl.SSLContext,
        connections: Connections,
    ) -> None:
        super().__init__(
            loop,
            inner,
            context,
            None,  # type: ignore[arg-type]  # nobody waits for it
            server_side=True,
            ssl_handshake_timeout=HEAD_TIMEOUT,  # type: ignore[arg-type]  # a float will do
        )
        self._loop_of_it = loop
        self._connections = connections
        self._inner = inner
        self._lower: Transport
        self.client: Peer | None = None
        self.known = False

    def connection_made(self, transport: Any) -> None:
        self._lower, self.client = transport, get_remote_addr(transport)
        self._connections.arrived(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.left(self.client)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close it at once."""
        self._lower.abort()

    def buffer_updated(self, nbytes: int) -> None:
        if self._inner.transport is not None:
            super().buffer_updated(nbytes)
            return
        began = time.thread_time()
        super().buffer_updated(nbytes)
        rest = self._connections.host_time.charge(time.thread_time() - began)
        if rest and not self._lower.is_closing():
            self._lower.pause_reading()
            self._loop_of_it.call_later(rest, self._go_on)

    def _go_on(self) -> None:
        if not self._lower.is_closing():
            self._lower.resume_reading()
