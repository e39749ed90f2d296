"""The folder that tables lie in as files, until somebody has taken them."""

import contextlib
import os
import secrets
from pathlib import Path

from divingbell.gateway.spooled_tables import VALUES

MOST_FILES, MOST_BYTES = 16, 2 << 30
"""What may lie there at once; the oldest go first."""


class Spool:
    """Tables on their way: Parquet files with names that nobody guesses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self) -> Path:
        """Return a path for the next file, after making room for it."""
        self._make_room()
        return self._folder / f"{secrets.token_hex(16)}.parquet"

    def link(self, kept: Path) -> Path:
        """Return a file with the content of one that is kept elsewhere."""
        path = self.new()
        try:
            os.link(kept, path)
        except OSError:  # on another file system
            path.write_bytes(kept.read_bytes())
        return path

    def find(self, name: str) -> Path | None:
        """Return the file of this name, if it is still there."""
        path = self._folder / f"{name}.parquet"
        return path if name.isalnum() and path.is_file() else None

    def drop(self, path: Path) -> None:
        """Remove a file, together with the values beside it."""
        path.unlink(missing_ok=True)
        path.with_suffix(VALUES).unlink(missing_ok=True)

    def _make_room(self) -> None:
        found = []
        for path in self._folder.glob("*.parquet"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_ctime_ns, status.st_size, path))
        found.sort(reverse=True)
        total = 0
        for number, (_, size, path) in enumerate(found, 1):
            total += size
            if number >= MOST_FILES or total > MOST_BYTES:
                self.drop(path)
