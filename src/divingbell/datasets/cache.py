"""Tables that were read once, kept as Parquet: by path, size and time of their file.

Each folder of datasets has a cache of its own, which its sessions see read-only: what is kept of
another one is nothing that a query could read. All of them share one largest size, and one that
nobody has used for a month goes.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from divingbell.datasets.folder import DataFile
from divingbell.host import owned_folder

FORMAT = 2
"""Raised when the same file is to be kept in another way."""
MOST_BYTES = 4 << 30
"""Of all folders together; what was not used for longest goes first."""
UNUSED = 30 * 86_400.0
"""Seconds without a use after which the cache of a folder goes: the folder may long be gone."""
TABLES = "tables"


class Cache:
    """The tables of one folder."""

    def __init__(self, home: Path, folder: Path) -> None:
        """Make it.

        Raises:
            NotOurs: another user could change what is there.
        """
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
        self._above = home / "datasets"
        owned_folder.make(self._above, 0o700)  # nobody else gets as far as the tables
        self._facts = self._above / name
        owned_folder.make(self._facts, 0o700)
        os.utime(self._facts)
        self._remove_unused()
        self.tables = self._facts / TABLES
        """The folder to be shown to sessions, some of which have a uid of their own."""
        owned_folder.make(self.tables, 0o755)

    def find(self, file: DataFile, part: int | None) -> tuple[Path, dict[str, Any]] | None:
        """Return the table of a file that has not changed since, and what is known of it."""
        key = _key(file, part)
        path = self.tables / f"{key}.parquet"
        try:
            facts = json.loads((self._facts / f"{key}.json").read_bytes())
            os.utime(path)  # so that it is among the last to go
            os.utime(self._facts)
        except (OSError, ValueError):
            return None
        return (path, facts) if isinstance(facts, dict) else None

    async def keep(
        self,
        file: DataFile,
        part: int | None,
        facts: Mapping[str, Any],
        pieces: AsyncIterator[bytes],
    ) -> Path:
        """Keep a table; return its path."""
        key = _key(file, part)
        building = self.tables / f".{key}.{os.getpid()}"
        try:
            with building.open("wb") as target:
                async for piece in pieces:
                    target.write(piece)
            building.chmod(0o644)
            path = building.rename(self.tables / f"{key}.parquet")
        finally:
            building.unlink(missing_ok=True)
        (self._facts / f"{key}.json").write_text(json.dumps(dict(facts)))
        self._make_room(path)
        return path

    def _make_room(self, newest: Path) -> None:
        found = []
        for path in self._above.glob(f"*/{TABLES}/*.parquet"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        total = 0
        for _, size, path in sorted(found, reverse=True):
            total += size
            if total > MOST_BYTES and path != newest:
                path.unlink(missing_ok=True)
                (path.parents[1] / f"{path.stem}.json").unlink(missing_ok=True)

    def _remove_unused(self) -> None:
        oldest = time.time() - UNUSED
        for other in self._above.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process does the same
                if other.lstat().st_mtime < oldest:
                    shutil.rmtree(other)


def _key(file: DataFile, part: int | None) -> str:
    parts = [FORMAT, os.fsencode(file.path).hex(), file.size, file.modified, part]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
