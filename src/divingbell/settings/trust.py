"""Files of folders that this user has looked at and trusts, each as it was then.

A file is known by its real path and the hash of its content. One that has changed since, or that
lies elsewhere, is not trusted.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from divingbell.errors import ConfigError
from divingbell.host import places, private_file
from divingbell.settings import sources
from divingbell.settings.sources import Found, Source
from divingbell.text import one_line

FILE_NAME = "trusted.json"
MOST = 1000
"""Files that are remembered; the ones that were trusted first are forgotten first."""
_MAX_FILE = 8 << 20
"""Bytes of the record that are read. With ordinary paths it has a few hundred thousand."""
MAX_NAME = 1000
"""Characters of a path that are shown."""

Standing = Literal["trusted", "changed", "unknown"]
Asker = Callable[[Found, str], bool]
"""Shows files, and why they are asked about; returns whether they are trusted."""


class Trust:
    """The record of trusted files, in a private file of the user."""

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


def find(
    folder: Path,
    environment: Mapping[str, str],
    *,
    with_list: bool = True,
    trust: Trust | None = None,
    ask: Asker | None = None,
    tell: Callable[[str], None] | None = None,
) -> Found:
    """Return the files that a command uses without their being named.

    They are those of the folder, once they are trusted, or else those of the user. Without
    `with_list` the folder's list of servers is left out, because another one is named; then its
    settings are left out too where there is nobody to ask.

    Raises:
        ConfigError: the folder's are not trusted, and there is nobody to ask.
    """
    settings = sources.lying_at(folder.resolve() / sources.FILE_NAME)
    if settings is None:
        return sources.of_user(environment)
    trust = trust or Trust()
    if ask is None and trust.standing(settings) != "trusted":
        # It is not even parsed: only a person who is asked has to see what is in it.
        if with_list:
            raise ConfigError(_refusal([settings], trust))
        return _without([settings], environment, tell)
    found = sources.with_list(settings) if with_list else Found(settings)
    doubtful = [each for each in found.all if trust.standing(each) != "trusted"]
    if not doubtful:
        return found
    if ask is None:
        raise ConfigError(_refusal(doubtful, trust))
    if ask(found, _reason(doubtful, trust)):
        trust.allow(found.all)
        return found
    return _without(found.all, environment, tell)


def _without(
    files: Sequence[Source], environment: Mapping[str, str], tell: Callable[[str], None] | None
) -> Found:
    if tell is not None:
        tell(f"going on without {names(files)}: not trusted")
    return sources.of_user(environment)


def _reason(doubtful: list[Source], trust: Trust) -> str:
    if any(trust.standing(each) == "changed" for each in doubtful):
        return f"{names(doubtful)} changed since you trusted it. This is all that is in it now:"
    return "This folder has settings that you did not look at yet. This is all that is in them:"


def _refusal(doubtful: list[Source], trust: Trust) -> str:
    changed = any(trust.standing(each) == "changed" for each in doubtful)
    state = "changed since it was trusted" if changed else "is not trusted yet"
    return (
        f"{names(doubtful)} {state}, and there is no terminal to ask at. It could start "
        "programs on this machine. Look at it and run `divingbell trust` in that folder, or "
        f"name the file that you mean: {options(doubtful)}"
    )


def names(files: Iterable[Source]) -> str:
    """Return the paths of files, to be shown."""
    return " and ".join(one_line(str(each.path), MAX_NAME) for each in files)


def options(files: Iterable[Source]) -> str:
    """Return the options that name such files."""
    is_settings = [each.path.name == sources.FILE_NAME for each in files]
    return " ".join("--config FILE" if each else "--mcp-config FILE" for each in is_settings)
