"""The content that a file is made from, cut into pieces that fit a frame."""

import asyncio
import inspect
import itertools
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from divingbell.errors import InvalidInput

PIECE = 1 << 18
CHUNKS_AT_ONCE = 1000
"""Chunks of an iterator that are taken in one visit to a thread, which costs 0.1 ms: one that
gives empty chunks for ever must come back to be cancelled."""

Bytes = bytes | bytearray | memoryview


class Readable(Protocol):
    """An open file, or what reads like one."""

    def read(self, size: int, /) -> bytes | str:
        """Return the next bytes or characters, at most so many; nothing at the end."""


Source = str | Bytes | Path | Readable | Iterator[Bytes] | AsyncIterator[Bytes]
"""The kinds of content that a file can be made from. A path is one of the host."""

_WHAT_TO_PASS = (
    "pass text, bytes, a pathlib.Path of this machine, an open file, or an iterator of bytes, "
    "plain or asynchronous"
)


def pieces_of(data: Source) -> AsyncGenerator[bytes, None]:
    """Return the content in pieces that fit a frame. Text is written as UTF-8.

    Files and plain iterators are read in a thread, so that a slow one holds up nobody.

    Raises:
        InvalidInput: no file can be made from it; the message says what to pass.
    """
    if isinstance(data, str):
        return _of_text(data)
    if isinstance(data, bytes | bytearray | memoryview):
        return _of_bytes(_view_of(data))
    if isinstance(data, Path):
        return _of_path(data)
    if isinstance(data, AsyncIterator):
        return _of_asynchronous(data)
    if callable(getattr(data, "read", None)):
        return _of_file(_checked_file(data))
    if isinstance(data, Iterator):
        return _of_iterator(data)
    raise InvalidInput(f"a file can't be made from a {type(data).__name__}: {_WHAT_TO_PASS}")


def _view_of(chunk: Any) -> memoryview:
    """The bytes of a chunk, which may be anything where an iterator gave it."""
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise InvalidInput(
            f"the pieces of a file are bytes, and one of them is a {type(chunk).__name__}: "
            "encode text first, or pass it as one text"
        )
    view = memoryview(chunk)
    if not view.c_contiguous:
        raise InvalidInput("the memoryview has gaps: pass bytes(view), which copies it")
    return view.cast("B")


def _checked_file(file: Any) -> Readable:
    if inspect.iscoroutinefunction(file.read):
        raise InvalidInput(
            f"the read() of a {type(file).__name__} is asynchronous: pass the file below it "
            "(`.file` of an upload), or an asynchronous iterator of its bytes"
        )
    if getattr(file, "closed", False) is True:
        raise InvalidInput("the file is closed: open it again, and put it before it is closed")
    if callable(readable := getattr(file, "readable", None)) and readable() is False:
        raise InvalidInput("the file was opened for writing only: open it with the mode 'rb'")
    return file  # type: ignore[no-any-return]


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        sign = text[error.start]
        raise InvalidInput(
            f"the text has {sign!a} in it, half a character, which UTF-8 can't write: "
            "encode it yourself and pass the bytes"
        ) from None


async def _of_text(text: str) -> AsyncGenerator[bytes, None]:
    step = PIECE // 4  # a character has up to four bytes
    for start in range(0, len(text), step):
        yield _encoded(text[start : start + step])


async def _of_bytes(view: memoryview) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE])


async def _of_path(path: Path) -> AsyncGenerator[bytes, None]:
    with await asyncio.to_thread(_opened, path) as file:
        async for piece in _of_file(file):
            yield piece


def _opened(path: Path) -> BinaryIO:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is a folder: put its files one by one, or an archive of it")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is a pipe, a socket or a device: open it, and pass that")
    # Not blocking, because a pipe may be in its place by now.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


async def _of_file(file: Readable) -> AsyncGenerator[bytes, None]:
    while read := await asyncio.to_thread(_read, file):
        async for piece in _of_bytes(memoryview(read)):
            yield piece


def _read(file: Readable) -> bytes:
    read: Any = file.read(PIECE)
    return _encoded(read) if isinstance(read, str) else bytes(_view_of(read))


async def _of_asynchronous(chunks: AsyncIterator[Bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        async for piece in _of_bytes(_view_of(chunk)):
            yield piece


async def _of_iterator(chunks: Iterator[Bytes]) -> AsyncGenerator[bytes, None]:
    while (taken := await asyncio.to_thread(_take, chunks)) is not None:
        async for piece in _of_bytes(memoryview(taken)):
            yield piece


def _take(chunks: Iterator[Bytes]) -> bytearray | None:
    """Take chunks until there are enough for a piece; None after the last."""
    count, taken = 0, bytearray()
    for count, chunk in enumerate(itertools.islice(chunks, CHUNKS_AT_ONCE), 1):  # noqa: B007
        taken += _view_of(chunk)  # a copy: some give the same buffer again and again
        if len(taken) >= PIECE:
            break
    return taken if count else None
