"""The files of a workspace, kept sealed from one session to the next.

Code in a sandbox computes with real values, so its files have them, whatever the model sees. The
words of a conversation are kept with tokens instead; files can't be, because they must come back as
they were. So they are sealed with the key of the vault, their names too: whoever has a copy of the
folder and not the key can read neither.
"""

import asyncio
import hashlib
import os
import secrets
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from divingbell.border.vault.seal import NotOpened, Seal
from divingbell.errors import FileRefused
from divingbell.host import owned_folder, private_file
from divingbell.models import FileInfo
from divingbell.session.base import FilesHandle

MOST_FILES = 1_000
MOST_BYTES = 256 << 20
"""Bytes of all files of one conversation."""
PIECE = 1 << 20
"""Bytes that are sealed together: each takes half a millisecond."""
_TAG = 16
_SALT = 7
_MOST_INDEX = 32 << 20
"""Bytes of the list: a thousand paths of 4 KB, which JSON may make six times as long."""
_INDEX = "index"


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that is kept."""

    path: str
    """Below /workspace."""
    size: int
    modified: float
    stored: str
    """The name under which it lies in the folder."""


class KeptFiles:
    """The folder with the files of one conversation."""

    def __init__(self, folder: Path, key: bytes, conversation: str) -> None:
        self._folder = folder
        self._seal = Seal(key)
        self._cipher = AESGCM(hashlib.blake2b(key, person=b"files", digest_size=32).digest())
        self._place = f"files of {conversation}"
        self._kept = {file.path: file for file in self._read()}
        self._waiting: dict[str, KeptFile] = {}
        """Files that a session had no room for: they stay kept."""

    @property
    def kept(self) -> list[KeptFile]:
        """The files that there are, by their paths."""
        return [self._kept[path] for path in sorted(self._kept)]

    async def save(self, files: FilesHandle) -> list[str]:
        """Keep the files of a workspace as they are now; return those for which there is no room.

        Raises:
            OSError: they can't be written.
            DivingbellError: the session can't give them.
        """
        now = dict(self._waiting)
        left_out: list[str] = []
        total = sum(file.size for file in now.values())
        for info in await files.list():
            total += info.size
            if len(now) >= MOST_FILES or total > MOST_BYTES:
                total -= info.size
                left_out.append(info.path)
            elif (kept := await self._keep(files, info)) is not None:
                now[info.path] = kept
        if now != self._kept:
            await asyncio.to_thread(self._write, now)
        return left_out

    async def _keep(self, files: FilesHandle, info: FileInfo) -> KeptFile | None:
        before = self._kept.get(info.path)
        if before is not None and (before.size, before.modified) == (info.size, info.modified):
            return before
        stored = secrets.token_hex(16)
        owned_folder.make(self._folder, 0o700)
        path = self._folder / stored
        try:
            async with await files.open(info.path, most=MOST_BYTES) as opened:
                file = await asyncio.to_thread(_create, path)
                with file:
                    await self._seal_into(file, opened, stored)
        except FileRefused:  # code has removed it meanwhile, or made something else of it
            path.unlink(missing_ok=True)
            return None
        return KeptFile(info.path, opened.info.size, opened.info.modified, stored)

    async def _seal_into(self, file: BinaryIO, pieces: AsyncIterator[bytes], stored: str) -> None:
        """Seal piece by piece: none can be left out, moved or put into another file."""
        salt = secrets.token_bytes(_SALT)
        file.write(salt)
        waiting, number = bytearray(), 0
        async for piece in pieces:
            waiting += piece
            while len(waiting) > PIECE:
                sealed = self._sealed(salt, number, False, bytes(waiting[:PIECE]), stored)
                await asyncio.to_thread(file.write, sealed)
                del waiting[:PIECE]
                number += 1
        file.write(self._sealed(salt, number, True, bytes(waiting), stored))

    def _sealed(self, salt: bytes, number: int, is_last: bool, data: bytes, stored: str) -> bytes:
        return self._cipher.encrypt(_nonce(salt, number, is_last), data, self._bound(stored))

    def _bound(self, stored: str) -> bytes:
        return f"{self._place}/{stored}".encode()

    async def restore(self, files: FilesHandle) -> list[str]:
        """Put all files into the workspace of a session; return those that can't be read any more.

        Raises:
            DiskFull: the session has no room for them.
            DivingbellError: the session can't take them.
        """
        damaged = []
        self._waiting = dict(self._kept)
        for file in self.kept:
            try:
                await files.put(file.path, self._pieces(file))
                there = await files.stat(file.path)
                self._kept[file.path] = replace(file, modified=there.modified)
            except (OSError, NotOpened):
                damaged.append(file.path)
                del self._kept[file.path]
            del self._waiting[file.path]
        return damaged

    def _pieces(self, file: KeptFile) -> Iterator[bytes]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._folder / file.stored, flags), "rb") as opened:
            salt, number = opened.read(_SALT), 0
            left = opened.read(PIECE + _TAG)
            while left:
                following = opened.read(PIECE + _TAG)
                yield self._opened(salt, number, not following, left, file.stored)
                left, number = following, number + 1

    def _opened(self, salt: bytes, number: int, is_last: bool, data: bytes, stored: str) -> bytes:
        try:
            return self._cipher.decrypt(_nonce(salt, number, is_last), data, self._bound(stored))
        except (InvalidTag, ValueError) as error:
            raise NotOpened(stored) from error

    # The list of what is there

    def _read(self) -> list[KeptFile]:
        raw = private_file.read(self._folder / _INDEX, _MOST_INDEX)
        if raw is None:
            return []
        return [KeptFile(*row) for row in self._seal.open(raw, self._place)]

    def _write(self, now: dict[str, KeptFile]) -> None:
        rows = [[file.path, file.size, file.modified, file.stored] for file in now.values()]
        private_file.write(self._folder / _INDEX, self._seal.close(rows, self._place))
        self._kept = now
        wanted = {file.stored for file in now.values()} | {_INDEX}
        for path in self._folder.iterdir():
            if path.name not in wanted:
                path.unlink()


def _nonce(salt: bytes, number: int, is_last: bool) -> bytes:
    return salt.ljust(_SALT, b"\0")[:_SALT] + struct.pack(">I?", number, is_last)


def _create(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
