"""A tunnel: the bytes of one socket, carried by a stream to a socket at the other end of a line.

The file server of a session speaks to the host over a socket. On a node that host is elsewhere: its
bytes pass as they are, and who checks them is who asked for them, as ever.
"""

import asyncio
import contextlib
import select
import socket

from divingbell.errors import DivingbellError
from divingbell.scale.line import Stream

READ_SIZE = 1 << 16
LAST_PATIENCE = 5.0
"""Seconds for the last words of a side that has gone: why a file was refused, for instance."""


async def carry(descriptor: int, stream: Stream, *, opened_here: bool) -> None:
    """Carry bytes both ways until both are done, or one can't go on; close the socket then."""
    end = socket.socket(fileno=descriptor)
    end.setblocking(False)
    ways = [asyncio.create_task(_out(end, stream)), asyncio.create_task(_in(end, stream))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        if _has_last_words(*ways):
            await asyncio.wait(ways, timeout=LAST_PATIENCE)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
        for way in ways:
            if not way.cancelled():
                way.exception()  # whoever reads the socket sees that it has ended
        end.close()
        if opened_here:
            stream.tell({"do": "leave"})
            stream.abandon()
        elif not stream.ended:
            stream.fail(DivingbellError("the tunnel has ended"))


def _has_last_words(out: "asyncio.Task[None]", into: "asyncio.Task[None]") -> bool:
    """Whether one way can't go on because the side that it leads to has gone, so that the other
    has an end: what is on it still comes."""
    if not out.done():
        return isinstance(into.exception(), OSError)
    return not into.done() and isinstance(out.exception(), DivingbellError)


async def _out(end: socket.socket, stream: Stream) -> None:
    """Carry from the socket to the stream; its end with it."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(end, READ_SIZE):
        await stream.send({"piece": True}, data)
    if _is_closed(end):
        raise BrokenPipeError  # nobody is there any more, to read or to write
    await stream.send({"last": True})


def _is_closed(end: socket.socket) -> bool:
    """Whether the other side has closed its end, and not only said that it sends no more."""
    poll = select.poll()
    poll.register(end, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


async def _in(end: socket.socket, stream: Stream) -> None:
    """Carry from the stream to the socket; its end with it."""
    loop = asyncio.get_running_loop()
    while True:
        message = await stream.receive()
        if message.header.get("last") is True:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_WR)
            return
        if "do" in message.header or not message.body:
            raise DivingbellError("the other end has left the tunnel")
        await loop.sock_sendall(end, message.body)
