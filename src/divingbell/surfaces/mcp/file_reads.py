"""Files that clients read as resources: one at a time for each user, at the pace of a share.

A file of some megabytes costs the event loop, which all sessions share, several times what a small
cell does: it is read in, encoded, written as JSON and sent. So it is encoded beside the loop, and
a user who asks for many waits for each of them. What is not sent yet counts for the user.
"""

import asyncio
import base64
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from divingbell.errors import FileRefused, FileTooLarge
from divingbell.session.base import SessionHandle
from divingbell.shares import allowance
from divingbell.shares.allowance import Hold
from divingbell.shares.host_time import HostTime

MAX_READ = 5 << 20
"""Bytes of a file; larger ones are for code. Measured: the SDK writes the answer as JSON, and as an
event, on the loop, in some 10 ms a megabyte. A page with plotly in it has just under five."""
MAX_WAITING = 100
"""Reads of one user that wait for their turn: as many as it may have requests."""
ROOM_TIMEOUT = 30.0
"""Seconds to wait until the client has taken what was read before."""
COPIES = 4
"""Of what was encoded: as a text, as JSON, and as bytes on their way."""
SECONDS_PER_BYTE = 1e-8
"""Of the loop's time, to read in, write and send. Measured: 7 MB take 70 ms of it."""
_LOOK_AGAIN = 0.05
_PIECE = 3 << 16
"""Bytes that are encoded in a row, a multiple of three: base64 lets no other thread run."""
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b"))
_MOST_CONTROLS = 0.1
"""Of a text; each takes six times as much in JSON. What has more of them is no text."""

TOO_LARGE = (
    ": have execute_python print the part that you need, or cut the file into smaller ones with it "
    "and read those"
)
TOO_MANY = f"you have {MAX_WAITING} reads that wait: wait for one to end"
NO_ROOM = "what you have read before is not sent yet: take those answers first, then read this"
GONE = "whoever asked for it has left"


class Encoded(NamedTuple):
    """The content of a file as it can be written in JSON: as it is, or in base64."""

    content: str
    is_text: bool


class _Turns:
    """The turns of one user's reads: one at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._host_time = HostTime(lambda seconds, times: None)
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def next(self) -> AsyncIterator[None]:
        if self._waiting >= MAX_WAITING:
            raise FileRefused(TOO_MANY)
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()

    async def rest(self, size: int) -> None:
        """Let others come first, for as long as so many bytes are worth."""
        await asyncio.sleep(self._host_time.charge(size * SECONDS_PER_BYTE))


class Reading:
    """Reads files for the users of one surface."""

    def __init__(self) -> None:
        self._turns: defaultdict[str | None, _Turns] = defaultdict(_Turns)

    async def read(self, user: str, session: SessionHandle, path: str, as_text: bool) -> Encoded:
        """Return the content of a file, as a text if it is asked for and is one.

        Raises:
            FileRefused: there is no such file, it is too large, or too much is under way.
        """
        return await self.take(user, lambda: _pieces(session, path), as_text)

    async def take(
        self, user: str, pieces: Callable[[], Awaitable[list[bytes]]], as_text: bool
    ) -> Encoded:
        """Return a content that comes in pieces, as a text if it is asked for and is one.

        Raises:
            FileRefused: too much is under way.
        """
        hold, turns = allowance.RESULT.get(), self._turns[user]
        async with turns.next():
            if hold is not None and hold.closed:
                raise FileRefused(GONE)
            encoded = await encode(await pieces(), as_text)
            await _room(hold, COPIES * len(encoded.content))
            await turns.rest(len(encoded.content))
            return encoded

    def turn(self, user: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Enter a block when it is the turn of this user's next read.

        Raises:
            FileRefused: too many wait.
        """
        return self._turns[user].next()


async def _pieces(session: SessionHandle, path: str) -> list[bytes]:
    found: list[bytes] = []
    try:
        async with contextlib.aclosing(session.files.stream(path, most=MAX_READ)) as pieces:
            async for piece in pieces:
                found.append(piece)
    except FileTooLarge as error:
        raise FileTooLarge(str(error) + TOO_LARGE) from None
    return found


async def encode(pieces: list[bytes], as_text: bool) -> Encoded:
    """Return a content as it can be written in JSON, as a text if it is asked for and is one."""
    if sum(map(len, pieces)) <= _PIECE:
        return _encode(pieces, as_text)
    return await asyncio.to_thread(_encode, pieces, as_text)


def _encode(pieces: list[bytes], as_text: bool) -> Encoded:
    data = b"".join(pieces)
    if as_text and _is_text(pieces, len(data)):
        with contextlib.suppress(UnicodeDecodeError):
            return Encoded(data.decode(), True)
    written = []
    for start in range(0, len(data), _PIECE):
        written.append(base64.b64encode(data[start : start + _PIECE]))
        time.sleep(0)  # lets the loop run
    return Encoded(b"".join(written).decode("ascii"), False)


def _is_text(pieces: list[bytes], size: int) -> bool:
    plain = sum(len(piece.translate(None, _CONTROLS)) for piece in pieces)
    return size - plain <= size * _MOST_CONTROLS


async def _room(hold: Hold | None, size: int) -> None:
    """Wait until so much more may be under way."""
    if hold is None:
        return
    end = time.monotonic() + ROOM_TIMEOUT
    while not hold.grow(size):
        if time.monotonic() > end:
            raise FileRefused(NO_ROOM)
        await asyncio.sleep(_LOOK_AGAIN)
