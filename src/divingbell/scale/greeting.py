"""The greeting: both sides of a line prove that they know the node's secret, and say who they are.

The secret itself never travels: each side sends a number, and the other side's proof is made of
both numbers. So a proof that was overheard is of no use later, and whoever listens in a node's
place learns nothing. Until the proof is right, nothing that came is parsed, and what may come is
counted in bytes.
"""

import asyncio
import hmac
import ipaddress
import platform
import secrets
import socket
import ssl
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, cast

from divingbell.errors import ConfigError
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.line import Line, LineLost, Message, NobodyListens
from divingbell.session.intake import field_of
from divingbell_inside import frames

MAGIC = b"divbell1"
NONCE = PROOF = 32
"""Bytes."""
TIMEOUT = 5.0
"""Seconds for the connection, both proofs and the first words after them."""
MAX_STRANGERS = 64
"""Connections at once that have proved nothing yet."""
MAX_SHOWN = 300


def versions() -> dict[str, str]:
    """Return what has to be the same on both sides."""
    return {
        "divingbell": version("divingbell"),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def difference(theirs: Any) -> str:
    """Say in which versions the other side differs; empty where it does not."""
    told = theirs if isinstance(theirs, dict) else {}
    names = {"divingbell": "Divingbell", "python": "Python"}
    return " and ".join(
        f"{names[name]} {str(told.get(name, 'unknown'))[:20]} and not {ours}"
        for name, ours in versions().items()
        if told.get(name) != ours
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_walls(host: str, tls: ssl.SSLContext | None) -> None:
    """Raises:
    ConfigError: a line would go over a network in the clear.
    """
    if tls is None and not is_loopback(host):
        raise ConfigError(
            f"{host} is another machine, and the line to it would go over the network in the "
            "clear: set RAY_USE_TLS=1 with Ray's certificates on all machines, or run front and "
            "node on one machine"
        )


def _proof(secret: str, side: bytes, front: bytes, node: bytes) -> bytes:
    return hmac.digest(secret.encode(), side + front + node, "sha256")


class _Greeting(asyncio.Protocol):
    """A connection until both sides are known to each other."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's is none of asyncio's classes
        connection: socket.socket = transport.get_extra_info("socket")
        # asyncio does it only for sockets that were made with IPPROTO_TCP: small frames would wait.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _become(self, line: Line) -> None:
        """Hand the connection over to its line."""
        assert self._transport is not None
        self._transport.set_protocol(line)
        line.connection_made(self._transport)
        if self._buffer:
            line.data_received(bytes(self._buffer))


class Callee(_Greeting):
    """The side of a node, for one connection."""

    def __init__(
        self,
        secret: str,
        strangers: "set[Callee]",
        make: Callable[[], Line],
    ) -> None:
        super().__init__()
        self._secret = secret
        self._strangers = strangers
        self._make = make
        self._nonces: tuple[bytes, bytes] | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._strangers) >= MAX_STRANGERS:
            # A proof takes a moment: who has been here longest is not about to give one.
            min(self._strangers, key=lambda stranger: stranger._since).close()
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        self._strangers.add(self)
        self._timer = loop.call_later(TIMEOUT, self._hang_up)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data[: MAX_SHOWN * 1000]
        if self._nonces is None and len(self._buffer) >= len(MAGIC) + NONCE:
            magic, front, node = (
                self._take(len(MAGIC)),
                self._take(NONCE),
                secrets.token_bytes(NONCE),
            )
            if magic != MAGIC:
                self._hang_up()
                return
            self._nonces = front, node
            self._transport.write(node + _proof(self._secret, b"node", front, node))
        if self._nonces is not None and len(self._buffer) >= PROOF:
            given = self._take(PROOF)
            if not hmac.compare_digest(given, _proof(self._secret, b"front", *self._nonces)):
                self._hang_up()
                return
            self._done()
            self._become(self._make())

    def connection_lost(self, error: Exception | None) -> None:
        self._done()

    def _done(self) -> None:
        self._strangers.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def _hang_up(self) -> None:
        self._done()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        self._hang_up()


class Caller(_Greeting):
    """The side of a front, for one connection."""

    def __init__(self, node: NodeAddress, line: Line) -> None:
        super().__init__()
        self._node = node
        self._line = line
        self._nonce = secrets.token_bytes(NONCE)
        self.proved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        self._transport.write(MAGIC + self._nonce)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        if len(self._buffer) < NONCE + PROOF or self.proved.done():
            return
        theirs, given = self._take(NONCE), self._take(PROOF)
        secret = self._node.secret
        if not hmac.compare_digest(given, _proof(secret, b"node", self._nonce, theirs)):
            self._fail("it does not know the secret of that node")
            return
        self._transport.write(_proof(secret, b"front", self._nonce, theirs))
        self._become(self._line)
        self.proved.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("it hung up before it had proved to be that node")

    def give_up(self) -> None:
        """Hang up, unless the line is laid."""
        if not self.proved.done():
            self._fail("it was not waited for any longer")

    def _fail(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        if not self.proved.done():
            self.proved.set_exception(
                LineLost(
                    f"what listens at {self._node.host}:{self._node.port} is not the node "
                    f"{self._node.name}: {why}"
                )
            )
            self.proved.exception()  # who called may have been cancelled, and hears of nothing


async def call(
    node: NodeAddress,
    line: Line,
    hello: frames.Header,
    tls: ssl.SSLContext | None = None,
) -> frames.Header:
    """Lay a line to a node; return what it says of itself.

    Raises:
        LineLost: it does not answer, or is not that node.
        ConfigError: the line would go over a network in the clear, or the node has other versions.
    """
    check_walls(node.host, tls)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Message] = loop.create_future()

    def heard(_: Line, message: Message) -> None:
        if not answer.done():
            answer.set_result(message)

    def lost(_: Line, reason: str) -> None:
        if not answer.done():
            answer.set_exception(LineLost(reason))

    line.on_word, line.on_lost = heard, lost
    caller: Caller | None = None
    try:
        async with asyncio.timeout(TIMEOUT):
            _, caller = await loop.create_connection(
                lambda: Caller(node, line),
                node.host,
                node.port,
                ssl=None if is_loopback(node.host) else tls,
            )
            await caller.proved
            line.tell({"op": "hello", "versions": versions(), **hello})
            header = (await answer).header
    except TimeoutError:
        line.lose("it did not answer")
        raise LineLost(
            f"the node {node.name} ({node.host}:{node.port}) did not answer within {TIMEOUT:g} s"
        ) from None
    except asyncio.CancelledError:
        answer.cancel()
        line.lose("it was not waited for any longer")
        raise
    except OSError as error:
        kind = NobodyListens if isinstance(error, ConnectionRefusedError) else LineLost
        raise kind(
            f"the node {node.name} ({node.host}:{node.port}) can't be reached: {error}"
        ) from None
    finally:
        if caller is not None:
            caller.give_up()
        answer.cancel()
    if (refused := field_of(header, "refused", str)) is not None:
        line.lose("it refused")
        raise ConfigError(f"the node {node.name} refuses this front: {refused[:MAX_SHOWN]}")
    return header
