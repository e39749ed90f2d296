"""Variables of a session that its program sets and gets: plain data, arrays, frames.

Nothing is ever unpickled. A value travels as a column file (`divingbell_inside.columns`), whose
every length and offset is checked before it is used. Large ones are files of the workspace on
their way. Values are written and read in threads.
"""

import asyncio
import contextlib
import keyword
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from divingbell import text
from divingbell.errors import DivingbellError, FileRefused, InvalidInput, SessionClosed
from divingbell.models import DataFormat, FrameLibrary, Limits
from divingbell.session.base import FilesHandle
from divingbell.session.cancelling import see_through
from divingbell.session.looks import Seen
from divingbell.session.source import PIECE
from divingbell.shares import weight
from divingbell_inside import columns, frames, parcels

INLINE = 1 << 20
"""Bytes of a value that travels without a file: each step with a file takes a process inside."""
MAX_WEIGHT = 4_000_000
"""Of all plain data of a value that a session gives, see `divingbell.shares.weight`: 256 MB of
memory; four million integers in a list, or two million floats."""
FORMATS = ("parquet", "arrow", "csv")
MAX_NAME = 200
MAX_REASON = 600
NO_ANSWER = (
    "the session gave no answer: it took too long, or its interpreter ended; the next result says "
    "which variables are left"
)


class Ask(Protocol):
    """Asks the interpreter for something, in the queue of the session."""

    def __call__(
        self, request: frames.Header, body: bytes = b"", *, changes: bool = False
    ) -> Awaitable[Seen]: ...


class Data:
    """The way of values into one session and out of it.

    `charge` gets the processor time of threads.
    """

    def __init__(
        self,
        files: FilesHandle,
        ask: Ask,
        limits: Callable[[], Limits],
        charge: Callable[[float], object],
    ) -> None:
        self._files = files
        self._ask = ask
        self._limits = limits
        self._charge = charge

    async def set(self, name: str, value: Any, form: DataFormat | None) -> None:
        """Make a variable of a value; see `SessionHandle.set`."""
        _check_name(name)
        if not name.strip("_") or (name.startswith("__") and name.endswith("__")):
            raise InvalidInput(f"{name!r} is a name of Python's own: choose another")
        pieces = await weight.charged(lambda: _pieces(name, value, form), self._charge)
        size = sum(map(len, pieces)) if isinstance(pieces, list) else pieces.stat().st_size
        request = {"op": "set", "name": name, "path": "", "format": form}
        if size <= INLINE and form is None:
            assert isinstance(pieces, list)
            self._done(name, await self._ask(request, b"".join(pieces), changes=True))
            return
        await self._check_room(name, size)
        async with contextlib.AsyncExitStack() as afterwards:
            path = self._new_file(afterwards)
            source = pieces if isinstance(pieces, Path) else _each(pieces)
            await self._files.put(path, source)
            self._done(name, await self._ask({**request, "path": path}, changes=True))
            afterwards.pop_all()  # whoever has read it has removed it

    async def get(
        self,
        name: str,
        form: DataFormat | None,
        frame: FrameLibrary | None,
        most: int | None,
    ) -> Any:
        """Return the value of a variable; see `SessionHandle.get`."""
        _check_name(name)
        _check_format(form)
        if frame is not None and frame not in parcels.LIBRARIES:
            raise InvalidInput(f'frame must be "pandas" or "polars", not {frame!r}')
        allowed = self._limits().disk if most is None else most
        if type(allowed) is not int or allowed <= 0:
            raise InvalidInput(f"most is a number of bytes, not {most!r}")
        async with contextlib.AsyncExitStack() as afterwards:
            path = self._new_file(afterwards)
            request = {"op": "get", "name": name, "path": path, "format": form}
            seen = await self._ask({**request, "most": allowed, "inline": INLINE})
            if _item(name, seen).get("file") is True:
                data = await self._content(path, allowed)
            else:
                data = _small(name, seen.body, allowed)
                afterwards.pop_all()  # there is none
        if form is not None:
            return bytes(data)
        libraries = parcels.LIBRARIES if frame is None else (frame,)
        return await weight.charged(lambda: self._read(name, data, libraries), self._charge)

    async def _content(self, path: str, allowed: int) -> bytearray:
        async with await self._files.open(path, most=allowed) as file:
            found, at = bytearray(file.info.size), 0  # one that grows is moved, all of it at once
            async for piece in file:
                found[at : at + len(piece)] = piece
                at += len(piece)
        return found

    def _read(self, name: str, data: bytearray, libraries: tuple[str, ...]) -> Any:
        try:
            return parcels.unpack(columns.Reader(data, _Scale().check), libraries)
        except columns.NotHeld as error:
            raise InvalidInput(f"{name!r} can't be taken over: {_words(str(error))}") from None
        except columns.Broken as error:
            raise InvalidInput(
                f"what the session gave for {name!r} is no value: {_words(str(error))}"
            ) from None

    def _done(self, name: str, seen: Seen) -> None:
        if _item(name, seen).get("done") is not True:
            raise DivingbellError(NO_ANSWER)

    async def _check_room(self, name: str, size: int) -> None:
        """Refuse a value before it is sent, where it can't fit."""
        limits = self._limits()
        if 2 * size > limits.memory:
            raise InvalidInput(
                f"{name!r} has {size:,} bytes and needs twice as much memory on its way, the limit "
                f"memory of the session is {limits.memory:,}: open it with a higher one"
            )
        free = _item(name, await self._ask({"op": "room"})).get("free")
        if type(free) is not int:
            raise DivingbellError(NO_ANSWER)
        if size > free:
            raise InvalidInput(
                f"{name!r} takes {size:,} bytes on the session's disk on its way, {free:,} are "
                "free: remove files, or open the session with a higher limit disk"
            )

    def _new_file(self, afterwards: contextlib.AsyncExitStack) -> str:
        """Return the path of a file that is removed afterwards, whatever comes in between."""
        path = f".data-{secrets.token_hex(8)}"

        async def remove() -> None:
            await see_through(asyncio.create_task(self._remove(path)))

        afterwards.push_async_callback(remove)
        return path

    async def _remove(self, path: str) -> None:
        # It is gone already where it was read inside, and with the session.
        with contextlib.suppress(FileRefused, SessionClosed):
            await self._files.remove(path)


def _check_name(name: str) -> None:
    if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidInput(f"{str(name)[:60]!r} can't be the name of a variable")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"the name of a variable has at most {MAX_NAME} characters")


def _check_format(form: DataFormat | None) -> None:
    if form is not None and form not in FORMATS:
        raise InvalidInput(f"the format {form!r} is not one of {', '.join(FORMATS)}")


def _pieces(name: str, value: Any, form: DataFormat | None) -> list[columns.Piece] | Path:
    """Return a value as it travels."""
    _check_format(form)
    if form is None:
        try:
            return parcels.pack(value)
        except columns.NotHeld as error:
            raise InvalidInput(f"{name!r} can't be set: {error}") from None
    if isinstance(value, Path):
        if not value.is_file():
            raise InvalidInput(f"{str(value)!r} is no file: give the path of one, or its bytes")
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return [memoryview(value).cast("B")] if len(value) else []
    raise InvalidInput(
        "with a format the value is the content of a file: give its bytes or a pathlib.Path, "
        f"not {type(value).__name__}"
    )


async def _each(pieces: list[columns.Piece]) -> AsyncIterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), PIECE):
            yield bytes(piece[start : start + PIECE])


def _item(name: str, seen: Seen) -> dict[str, Any]:
    """Return what the interpreter answers.

    Raises:
        InvalidInput: it refuses.
        DivingbellError: it gives no answer that makes sense.
    """
    item = seen.items[0] if seen.items else None
    if type(item) is not dict:
        raise DivingbellError(NO_ANSWER)
    if type(reason := item.get("refused")) is str:
        raise InvalidInput(f"{name!r}: {_words(reason)}")
    return item


def _words(reason: str) -> str:
    return text.one_line(reason, MAX_REASON)


def _small(name: str, body: bytes, allowed: int) -> bytearray:
    if len(body) > allowed:
        raise InvalidInput(f"{name!r} has {len(body):,} bytes, {allowed:,} are allowed")
    return bytearray(body)


class _Scale:
    """Weighs all JSON of one value before it is parsed: together, and each part for itself."""

    def __init__(self) -> None:
        self._weight = 0

    def check(self, raw: bytes) -> None:
        found = weight.weight_of(raw, weight.MAX_RESULT)
        self._weight += found
        if found > weight.MAX_RESULT or self._weight > MAX_WEIGHT:
            raise columns.NotHeld("it is made of too many values: get its parts, or an array")
