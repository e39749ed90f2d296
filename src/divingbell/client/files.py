"""The files of a session, over HTTP."""

from collections.abc import AsyncGenerator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import PurePosixPath
from urllib.parse import quote

from divingbell.client import answers
from divingbell.client.connection import Connection
from divingbell.errors import FileMissing, FileRefused, FileTooLarge, ServiceRefused
from divingbell.models import FileInfo
from divingbell.session.source import Source, pieces_of
from divingbell_inside import layout

PIECE = 1 << 18


class Files:
    """The files below /workspace. All of these raise what those of the library do."""

    def __init__(self, connection: Connection, session: str) -> None:
        self._connection = connection
        self._path = f"/sessions/{quote(session, safe='')}/files"

    async def put(self, path: str | PurePosixPath, data: Source) -> int:
        """Store a file, making folders as needed; return its size.

        `data` is text, bytes, a pathlib.Path of this machine, an open file, or an iterator of
        bytes, plain or asynchronous. It is streamed.
        """
        stored = await self._connection.json("PUT", self._of(path), content=pieces_of(data))
        return int(stored["size"])

    async def get(self, path: str | PurePosixPath, *, most: int | None = None) -> bytes:
        """Return the content of a file of at most `most` bytes (whatever it has by default)."""
        return b"".join([piece async for piece in self.stream(path, most=most)])

    async def stream(
        self, path: str | PurePosixPath, *, most: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file in pieces. Raises what `get` does, with the first piece."""
        read = 0
        async with self._connection.stream("GET", self._of(path)) as response:
            async for piece in response.aiter_bytes(PIECE):
                read += len(piece)
                if most is not None and read > most:
                    raise FileTooLarge(f"{path} has more than {most:,} bytes")
                yield piece

    async def stat(self, path: str | PurePosixPath) -> FileInfo:
        """Return the size of a file, and when it was modified."""
        try:
            found = await self._connection.send("HEAD", self._of(path))
        except ServiceRefused as refused:  # what has no body has no code either
            missing = str(refused).startswith(f"{HTTPStatus.NOT_FOUND:d}")
            kind = FileMissing if missing else FileRefused
            raise kind(f"there is no file {str(path)!r:.200} in the workspace") from None
        modified = parsedate_to_datetime(found.headers["Last-Modified"]).timestamp()
        return FileInfo(_below(path), int(found.headers["Content-Length"]), modified)

    async def list(self, path: str | PurePosixPath = "") -> list[FileInfo]:
        """Return the regular files below a folder, sorted by path. Links are left out."""
        found = self._connection.items(self._path, path=str(path))
        return [answers.file_info(item) async for item in found]

    async def remove(self, path: str | PurePosixPath) -> None:
        """Remove a file, or a link."""
        await self._connection.send("DELETE", self._of(path))

    def _of(self, path: str | PurePosixPath) -> str:
        below = _below(path)
        # What begins elsewhere stays so, for the service to refuse.
        safe = "" if below.startswith("/") else "/"
        return f"{self._path}/{quote(below, safe=safe)}"


def _below(path: str | PurePosixPath) -> str:
    return str(path).removeprefix(layout.WORKSPACE + "/")
