"""The files and folders that a conversation is about: copied in, or shown read-only."""

import asyncio
import itertools
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.errors import DivingbellError, FileRefused
from divingbell.settings.tables import Place
from divingbell.surfaces.cli.chat_options import Paths
from divingbell.surfaces.cli.options import size
from divingbell.text import one_line
from divingbell_inside import layout

if TYPE_CHECKING:
    from divingbell.session.base import SessionHandle
    from divingbell.settings.config import Settings
    from divingbell.settings.servers import Entry

MOUNTED = "/data"
MOST_NAMED = 30
"""Files of a folder that are named to the model."""
MOST_COPIED = 500
"""Files of a folder that are copied in where it can't be shown."""
PATIENCE = 20.0
"""Seconds to look at a folder inside."""
PIPED = "stdin.txt"
"""The file for piped input."""
MAX_NAME = 100
DATA = "data"
"""The server of the first folder's tables; those of others have more behind it."""
MAX_SERVER = 30
STDIN = 0
_PIECE = 1 << 16


def inside_of(folder: Path) -> str:
    """Return where a folder is shown inside."""
    return f"{MOUNTED}/{folder.name or 'root'}"


def with_folders(settings: "Settings", paths: Paths) -> "Settings":
    """Return the settings with these folders shown inside, and the tables in them served.

    Raises:
        ConfigError: one of them can't be.
    """
    if not paths.folders:
        return settings
    shown = {inside_of(folder): str(folder) for folder in paths.folders}
    return replace(
        settings,
        mounts={**settings.mounts, **shown},
        servers=(*settings.servers, *_dataset_servers(settings, paths)),
    )


def _dataset_servers(settings: "Settings", paths: Paths) -> "Iterator[Entry]":
    """Return a server for each folder that has tables, under a name that is free."""
    from divingbell.datasets.folder import look_through
    from divingbell.settings.servers import read_entries

    taken = {entry.name for entry in settings.servers}
    for folder in paths.folders:
        try:
            has_tables = bool(look_through(folder).files)
        except OSError as error:
            raise FileRefused(f"{folder} can't be read: {error.strerror}") from None
        if has_tables and _is_for_sessions(folder):
            name = next(name for name in _names_for(folder) if name not in taken)
            taken.add(name)
            yield from read_entries({name: {"datasets": str(folder)}}, Place("the folders"))


def _is_for_sessions(folder: Path) -> bool:
    """Whether sessions can read it: those of root have a uid of their own."""
    everyone = stat.S_IROTH | stat.S_IXOTH
    return os.geteuid() != 0 or folder.stat().st_mode & everyone == everyone


def served(settings: "Settings") -> dict[str, str]:
    """Return the names of the servers of tables, by folder."""
    from divingbell.settings.servers import dataset_folders

    return {folder: name for name, folder in dataset_folders(settings.servers).items()}


def _names_for(folder: Path) -> Iterator[str]:
    yield DATA
    name = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")[:MAX_SERVER] or DATA
    yield f"{DATA}_{name}"
    yield from (f"{DATA}_{name}_{number}" for number in itertools.count(2))


async def lay_out(
    session: "SessionHandle", paths: Paths, servers: Mapping[str, str] | None = None
) -> list[str]:
    """Put everything in its place; return lines that say what is where.

    `servers` are those that have the tables of folders.

    Raises:
        FileRefused: a file can't be read, or there is no room for it.
    """
    lines = [await _put(session, path, path.name) for path in paths.files]
    for folder in paths.folders:
        if await _can_be_read(session, inside_of(folder)):
            names = _names(folder)
            server = (servers or {}).get(str(folder))
            tables = f"; its tables are in servers.{server}" if server else ""
            lines.append(f"{inside_of(folder)}, read-only: {names}{tables}")
        else:
            lines += await _copied(session, folder)
    return lines


async def _can_be_read(session: "SessionHandle", inside: str) -> bool:
    """Whether code can: sessions of root have a uid of their own, which may not look in there."""
    try:
        looked = await session.command(["ls", inside], timeout=PATIENCE)
    except DivingbellError:
        return False
    return looked.exit_code == 0


async def _copied(session: "SessionHandle", folder: Path) -> list[str]:
    """Copy a folder that code can't read; return what is where."""
    found = [path for path in sorted(folder.rglob("*")) if _is_plain(path, folder)]
    if not found:
        return [f"the folder {one_line(str(folder), MAX_NAME)} has no files"]
    for path in found[:MOST_COPIED]:
        await _put(session, path, f"{folder.name}/{path.relative_to(folder)}")
    left_out = len(found) - MOST_COPIED
    rest = f"; {left_out:,} more were left out" if left_out > 0 else ""
    return [
        f"{layout.WORKSPACE}/{one_line(folder.name, MAX_NAME)}, a copy, since code could not "
        f"read the folder itself (chmod o+rx lets it, and serves its tables): "
        f"{_names(folder)}{rest}"
    ]


def _is_plain(path: Path, folder: Path) -> bool:
    """Whether it is a file of the folder itself, and not hidden."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and not path.is_symlink() and path.is_file()


async def _put(session: "SessionHandle", path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            stored = await session.files.put(name, file)
    except OSError as error:
        raise FileRefused(f"{path} can't be copied: {error.strerror}") from None
    return f"{layout.WORKSPACE}/{one_line(name, MAX_NAME)} ({size(stored)})"


def _names(folder: Path) -> str:
    """Return the names in a folder, as far as there is room."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(
                (entry.name, entry.is_dir(), entry.stat().st_size if entry.is_file() else 0)
                for entry in entries
                if not entry.name.startswith(".")
            )
    except OSError as error:
        raise FileRefused(f"{folder} can't be read: {error.strerror}") from None
    words = [
        one_line(name, MAX_NAME) + ("/" if is_folder else f" ({size(length)})")
        for name, is_folder, length in found[:MOST_NAMED]
    ]
    rest = [f"and {len(found) - MOST_NAMED:,} more"] if len(found) > MOST_NAMED else []
    return ", ".join([*words, *rest]) or "it is empty"


async def put_piped(session: "SessionHandle") -> list[str]:
    """Store what is piped in as a file, if there is any; return what is where.

    Raises:
        DiskFull: there is no room for it.
    """
    stored = await session.files.put(PIPED, _piped())
    if not stored:
        await session.files.remove(PIPED)
        return []
    return [f"{layout.WORKSPACE}/{PIPED} ({size(stored)}), what was piped in"]


async def _piped() -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(os.read, STDIN, _PIECE):
        yield piece


def told(lines: list[str]) -> str:
    """Return the lines for the model, which follow the first question; empty for none."""
    return "" if not lines else "\n\n[Files of the person: " + "; ".join(lines) + "]"
