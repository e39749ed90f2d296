"""Files of folders that this user has looked at and trusts, each as it was then.

A file is known by its real path and the hash of its content. One that has changed since, or that
lies elsewhere, is not trusted.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from divingbell import places
from divingbell.errors import ConfigError
from divingbell.gateway import private_file
from divingbell.sources import Source

FILE_NAME = "trusted.json"
MOST = 1000
"""Files that are remembered; the ones that were trusted first are forgotten first."""
_MAX_FILE = 8 << 20

Standing = Literal["trusted", "changed", "unknown"]


class Trust:
    """The record of them, in a private file of the user's."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or places.data_folder() / FILE_NAME

    def standing(self, source: Source) -> Standing:
        """Tell whether a file is trusted as it was read."""
        known = self.files().get(_key(source.path))
        if known is None:
            return "unknown"
        return "trusted" if known == source.digest else "changed"

    def allow(self, sources: Iterable[Source]) -> None:
        """Trust these files as they were read.

        Raises:
            ConfigError: it can't be written down.
        """
        files = self.files()
        for source in sources:
            files.pop(_key(source.path), None)
            files[_key(source.path)] = source.digest
        self._write(files)

    def revoke(self, path: Path) -> list[str]:
        """Trust a file, or all files of a folder, no more; return those that were trusted.

        Raises:
            ConfigError: it can't be written down.
        """
        files = self.files()
        key = os.path.realpath(path) if path.is_dir() else _key(path)
        gone = [each for each in files if key in (each, os.path.dirname(each))]
        if gone:
            self._write({each: files[each] for each in files if each not in gone})
        return gone

    def files(self) -> dict[str, str]:
        """The trusted files: path and hash."""
        data = private_file.read(self._path, _MAX_FILE)
        try:
            found = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            return {}  # then everything is asked about again
        if not isinstance(found, dict):
            return {}
        return {path: digest for path, digest in found.items() if isinstance(digest, str)}

    def _write(self, files: dict[str, str]) -> None:
        kept = dict(list(files.items())[-MOST:])
        try:
            private_file.write(self._path, json.dumps(kept, indent=1).encode())
        except OSError as error:
            raise ConfigError(f"{self._path} can't be written: {error.strerror}") from None


def _key(path: Path) -> str:
    """The path with the links of its folders resolved; the file itself is never a link."""
    return os.path.join(os.path.realpath(path.parent), path.name)
