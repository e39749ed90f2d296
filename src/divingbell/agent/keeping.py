"""Conversations that come back: kept while they are held, gone on with later.

A folder for each, which only its owner can read: the words as a model sees them, so with tokens
where values are hidden, and the files of the workspace, both sealed. What stands for a hidden value
is known again as long as the vault keeps it, if the session has the name of the conversation as its
id. Variables do not come back: the person and the model are told which are gone.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.agent.history import Asked, Entry, Replied
from divingbell.agent.inventory import without_inventory
from divingbell.agent.kept_log import KeptLog, Lines, Written
from divingbell.agent.records import ShownCell
from divingbell.errors import ConfigError, InvalidInput
from divingbell.host import folders, owned_folder, places
from divingbell.settings.config import Settings
from divingbell.text import one_line

if TYPE_CHECKING:
    from divingbell.agent.kept_files import KeptFiles
    from divingbell.border.vault.seal import Seal

FOLDER = "conversations"
MOST_KEPT = 100
"""Conversations; those that were used longest ago go first."""
MOST_BYTES = 1 << 30
"""Bytes of all of them."""
MOST_TITLE = 80
OTHER_KEY = (
    "{what} sealed with another key of the vault: bring that key back, or begin a new conversation"
)
_HEAD = 64 << 10
"""Bytes of a log that are read for its title."""
_LOG, _FILES, _LOCK = "log.jsonl", "files", "lock"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

Key = Callable[[], bytes]
"""Returns the key of the vault, which is looked for when something has to be sealed or opened."""


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation in a list."""

    name: str
    title: str
    """The start of the first question; empty where none was asked."""
    used: float
    """Seconds since 1970."""
    is_open: bool = False
    """Whether a program holds it now."""


class Conversations:
    """The conversations of one folder."""

    def __init__(self, folder: Path, key: Key) -> None:
        """Make nothing yet; `key` returns the key of the vault."""
        self._folder = folder
        self._key = key
        self._seal: Seal | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Conversations":
        """Return those of this user, in the folder of what is kept.

        Raises:
            ConfigError: this user has no home directory.
        """
        home = places.data_folder()

        def key() -> bytes:
            from divingbell.border.vault.seal import load_key

            named = settings.vault.key_file
            return load_key(Path(named) if named else None, home)

        return cls(home / FOLDER, key)

    def begin(self) -> "Conversation":
        """Return a new conversation. Old ones go where there are too many.

        Raises:
            ConfigError: the folder can't be written to, or belongs to others.
        """
        try:
            owned_folder.make(self._folder, 0o700)
            self._make_room()
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
            return self._opened(name, Written())
        except OSError as error:
            raise ConfigError(_unwritable(error)) from error

    def load(self, name: str = "") -> "Conversation":
        """Return a conversation to go on with: by its name or the start of it, else the newest.

        Raises:
            InvalidInput: there is none of that name, several begin with it, or it is open.
            ConfigError: the folder can't be written to, or belongs to others.
        """
        from divingbell.border.vault.seal import NotOpened

        chosen = self.find(name)
        try:
            written = self._lines(chosen).read(self._folder / chosen / _LOG)
            if written is None:
                raise InvalidInput(f"the conversation {chosen} can't be read: it is not yours")
            return self._opened(chosen, written)
        except NotOpened:
            raise ConfigError(OTHER_KEY.format(what=f"the conversation {chosen} was")) from None
        except OSError as error:
            raise ConfigError(_unwritable(error)) from error

    def _lines(self, name: str) -> Lines:
        """Return what reads and writes the log of a conversation."""
        if self._seal is None:
            # cryptography takes a twentieth of a second to load.
            from divingbell.border.vault.seal import Seal

            self._seal = Seal(self._key())
        return Lines(self._seal, name)

    def list(self) -> list[ConversationInfo]:
        """Return the conversations in which something was said, the newest first.

        Raises:
            ConfigError: the folder belongs to others.
        """
        return [info for info in self._all() if info.title]

    def _all(self) -> Sequence[ConversationInfo]:
        paths = list(self._paths())
        infos = (_info(path, self._lines(path.name)) for path in paths)
        found = [info for info in infos if info is not None]
        return sorted(found, key=lambda info: info.used, reverse=True)

    def remove(self, name: str) -> None:
        """Remove a conversation with its files.

        Raises:
            InvalidInput: there is none of that name, or it is open.
        """
        path = self._folder / self.find(name)
        with _held(path):
            folders.remove_tree(path)

    def _paths(self) -> Iterator[Path]:
        if owned_folder.check(self._folder):
            yield from (path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def find(self, name: str = "") -> str:
        """Return the name of a conversation: by its start, else the newest.

        Raises:
            InvalidInput: there is none of that name, or several begin with it.
        """
        if any(path.name == name for path in self._paths()):
            return name
        known = [info.name for info in self.list()]
        fitting = [each for each in known if each.startswith(name)]
        if not fitting:
            there = f": there is {', '.join(known[:5])}" if known else ": none is kept yet"
            shown = f" {one_line(name, MOST_TITLE)!r}" if name else ""
            raise InvalidInput(f"there is no conversation{shown}{there}")
        if name and len(fitting) > 1:
            raise InvalidInput(f"several begin with {name!r}: {', '.join(fitting[:5])}")
        return fitting[0]

    def _opened(self, name: str, written: Written) -> "Conversation":
        path = self._folder / name
        owned_folder.make(path, 0o700)
        with contextlib.ExitStack() as undo:
            undo.enter_context(_held(path))
            written.settle()
            lines = self._lines(name)
            lines.rewrite(path / _LOG, written)
            kept = KeptLog(path / _LOG, lines)
            undo.callback(kept.close)
            return Conversation(name, path, written, kept, self._key, undo.pop_all())

    def _make_room(self) -> None:
        total = 0
        open_first = sorted(self._all(), key=lambda info: not info.is_open)
        for number, info in enumerate(open_first, 1):
            path = self._folder / info.name
            total += sum(each.lstat().st_size for each in path.rglob("*"))
            if (number >= MOST_KEPT or total > MOST_BYTES) and not info.is_open:
                with contextlib.suppress(InvalidInput), _held(path):
                    folders.remove_tree(path)


class Conversation:
    """A conversation that is kept, held by this program alone."""

    def __init__(
        self,
        name: str,
        path: Path,
        written: Written,
        kept: KeptLog,
        key: Key,
        undo: contextlib.ExitStack,
    ) -> None:
        self.name = name
        """Its name, and the id that its session must have for its tokens to be known."""
        self.written = written
        """What it said when it was opened."""
        self.cells: dict[int, ShownCell] = dict(written.cells)
        """Its cells with all that they showed, by the place of the entry that has their output."""
        self.mode = written.mode
        """How tools are used in it, where that was decided; it stays so when it goes on."""
        self.synced: list[Entry] | None = None
        """The history that the log has by now; None before an agent goes on with it."""
        self.log = kept
        self._path = path
        self._key = key
        self._undo = undo
        self._is_open = True
        self._files: KeptFiles | None = None

    async def files(self) -> "KeptFiles":
        """Return the files that are kept with it.

        Raises:
            ConfigError: there is no key for them, or they were sealed with another.
        """
        if self._files is None:
            self._files = await asyncio.to_thread(self._open_files)
        return self._files

    def _open_files(self) -> "KeptFiles":
        # cryptography takes a twentieth of a second to load.
        from divingbell.agent.kept_files import KeptFiles
        from divingbell.border.vault.seal import NotOpened

        try:
            return KeptFiles(self._path / _FILES, self._key(), self.name)
        except NotOpened:
            raise ConfigError(OTHER_KEY.format(what=f"the files of {self.name} were")) from None

    def entries(self, model: str = "") -> list[Entry]:
        """Return what a model of that name is told of it."""
        if model == self.written.model:
            return list(self.written.entries)
        # What one provider wants back means nothing to another.
        return [
            replace(entry, native=None) if isinstance(entry, Replied) else entry
            for entry in self.written.entries
        ]

    def clear(self) -> None:
        """Forget all that was said, also on the disk. Raises: OSError."""
        self.log.clear()
        self.cells.clear()
        self.synced = []

    def close(self) -> None:
        """Let go of it. One in which nothing was said is gone. May be called again."""
        if self._is_open and self.log.is_untouched and not self.written.entries:
            folders.remove_tree(self._path)
        self._is_open = False
        self._undo.close()


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a conversation, as long as this program lives at most.

    Raises:
        InvalidInput: another one holds it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(path / _LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InvalidInput(
            f"the conversation {path.name} is open in another program: leave it there first"
        ) from None
    try:
        yield
    finally:
        os.close(lock)


def _info(path: Path, lines: Lines) -> ConversationInfo | None:
    """Return what a list says of a conversation; None where there is none. One that was sealed
    with another key has no title."""
    from divingbell.border.vault.seal import NotOpened

    try:
        used = (path / _LOG).stat().st_mtime
        with open(path / _LOG, "rb") as file:
            head = lines.parsed(file.read(_HEAD))
        with _held(path):
            is_open = False
    except InvalidInput:
        is_open = True
    except NotOpened:
        head, is_open = Written(), False
    except OSError:
        return None
    asked = [entry.text for entry in head.entries if isinstance(entry, Asked)]
    asked.append(head.asking or "")
    title = one_line(without_inventory(asked[0]), MOST_TITLE)
    return ConversationInfo(path.name, title, used, is_open)


def _unwritable(error: OSError) -> str:
    return (
        f"conversations can't be kept ({error.strerror}): set XDG_DATA_HOME to another folder, or "
        "keep none with --no-save"
    )
