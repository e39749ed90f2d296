"""What a file can be made from, and the sentences for what it can't."""

import asyncio
import io
import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from divingbell import InvalidInput
from divingbell.session.source import CHUNKS_AT_ONCE, PIECE, pieces_of
from tests.waiting import until


async def _whole(source: Any) -> bytes:
    pieces = [piece async for piece in pieces_of(source)]
    assert all(type(piece) is bytes and len(piece) <= PIECE for piece in pieces)
    return b"".join(pieces)


async def _asynchronous(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def _reused() -> Iterator[bytearray]:
    buffer = bytearray(3)
    for number in b"abc":
        buffer[:] = bytes([number]) * 3
        yield buffer


def _text_file(content: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content.encode("latin-1")), encoding="latin-1")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gr\u00fc\u00dfe", "gr\u00fc\u00dfe".encode()),
        ("", b""),
        (memoryview(b"abcd")[1:3], b"bc"),
        (memoryview(b"abcd").cast("H"), b"abcd"),
        (io.StringIO("gr\u00fc\u00dfe"), "gr\u00fc\u00dfe".encode()),
        (_text_file("gr\u00fc\u00dfe"), "gr\u00fc\u00dfe".encode()),
        (iter([b"a", bytearray(b"b"), memoryview(b"c"), b""]), b"abc"),
        (_reused(), b"aaabbbccc"),
        (_asynchronous(b"a", bytearray(b"b"), memoryview(b"c")), b"abc"),
        (iter([]), b""),
        (iter([b""] * (CHUNKS_AT_ONCE + 1) + [b"end"]), b"end"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_these_are_taken(source: Any, expected: bytes) -> None:
    assert await _whole(source) == expected


async def test_large_ones_come_in_pieces(tmp_path: Path) -> None:
    text = "\N{WHALE}" * PIECE
    (tmp_path / "file").write_text(text, "utf-8")
    with (tmp_path / "file").open(encoding="utf-8") as opened, tempfile.TemporaryFile() as other:
        other.write(text.encode())
        other.seek(4)
        assert await _whole(other) == text[1:].encode()
        for source in (text, text.encode(), tmp_path / "file", opened, iter([text.encode()])):
            assert await _whole(source) == text.encode()


async def test_files_and_plain_iterators_are_read_beside_the_loop() -> None:
    seen = list[int]()

    def chunks() -> Iterator[bytes]:
        seen.append(threading.get_ident())
        yield b"a"

    class File:
        def read(self, size: int) -> bytes:
            seen.append(threading.get_ident())
            return b""

    await _whole(chunks())
    await _whole(File())
    assert len(seen) == 2 and threading.get_ident() not in seen


def _closed_file() -> io.BytesIO:
    file = io.BytesIO(b"x")
    file.close()
    return file


def _written_file() -> io.BufferedWriter:
    return Path(os.devnull).open("wb")


class _Upload:
    async def read(self, size: int = -1) -> bytes:
        return b"x"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: None, "can't be made from a NoneType: pass text, bytes, a pathlib.Path"),
        (lambda: 7, "can't be made from a int"),
        (lambda: {"a": 1}, "can't be made from a dict"),
        (lambda: {}, "can't be made from a dict"),
        (lambda: [b"a"], "can't be made from a list: .* an iterator of bytes"),
        (lambda: PurePosixPath("a"), "can't be made from a PurePosixPath"),
        (lambda: memoryview(bytes(1 << 20))[::2], r"has gaps: pass bytes\(view\)"),
        (_closed_file, "the file is closed: open it again"),
        (_written_file, "opened for writing only: open it with the mode 'rb'"),
        (_Upload, "the read\\(\\) of a _Upload is asynchronous: .*`.file` of an upload"),
    ],
)
async def test_these_are_refused_before_anything_is_sent(
    make: Callable[[], Any], words: str
) -> None:
    source = make()
    with pytest.raises(InvalidInput, match=words):
        pieces_of(source)
    if isinstance(source, io.IOBase):
        source.close()


class _Liar:
    def read(self, size: int) -> Any:
        return 7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: iter(["text"]), "one of them is a str: encode text first"),
        (lambda: iter([b"a", None]), "one of them is a NoneType"),
        (lambda: _asynchronous(b"a", "text"), "one of them is a str"),
        (lambda: iter([memoryview(b"abcd")[::2]]), "has gaps"),
        (lambda: "a\ud800", r"has '\\ud800' in it, half a character"),
        (lambda: io.StringIO("a\ud800"), "half a character"),
        (_Liar, "one of them is a int"),
    ],
)
async def test_these_are_refused_when_they_come_to_it(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        await _whole(make())


async def test_paths_of_what_is_no_regular_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(InvalidInput, match=f"{name} is a pipe, a socket or a device"):
                await _whole(tmp_path / name)
    with pytest.raises(InvalidInput, match="is a pipe, a socket or a device"):
        await _whole(Path("/dev/zero"))
    with pytest.raises(InvalidInput, match="is a folder: put its files one by one"):
        await _whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        await _whole(tmp_path / "nothing")


async def test_an_iterator_that_gives_nothing_for_ever_can_be_cancelled() -> None:
    asked = 0

    def nothing() -> Iterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield b""

    task = asyncio.create_task(_whole(nothing()))
    await until(lambda: asked > 2 * CHUNKS_AT_ONCE, "it is asked again and again")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
