"""The files that settings come from. Each is read once: what was looked at is what is used.

A file that was named (`config=`, `--config`, `DIVINGBELL_CONFIG`) is read as it is. Nobody named
the one that lies in the current folder: it may have come with a clone, or be put there by another
user of the machine. It is only handed to those who ask for it, and never waited for. The user's own
are used where nobody else could have written them.
"""

import errno
import hashlib
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError
from divingbell.host import owned_folder
from divingbell.settings.jsonc import parse_document

FILE_NAME = "divingbell.toml"
MCP_FILE_NAME = "mcp.json"
MAX_FOUND = 64 << 10
"""Bytes of a file that nobody named. It is parsed to be shown before anyone trusts it, and the
worst TOML of that size took ten seconds."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was when it was read."""

    path: Path
    data: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def settings(self) -> dict[str, Any]:
        """Return the content of a divingbell.toml.

        Raises:
            ConfigError: it is not TOML.
        """
        try:
            return tomllib.loads(self.data.decode("utf-8"))
        except ValueError as error:  # of TOML, of UTF-8, or a number of thousands of digits
            raise ConfigError(f"{self.path} can't be read: {error}") from None
        except RecursionError:
            raise ConfigError(f"{self.path} can't be read: it is nested too deeply") from None

    def document(self) -> Any:
        """Return the content of an mcp.json.

        Raises:
            ConfigError: it is not JSON.
        """
        return parse_document(self.data, self.path)


@dataclass(frozen=True, slots=True)
class Found:
    """Files that nobody named, and that may be used all the same."""

    settings: Source | None = None
    servers: Source | None = None
    """The list of servers that goes with the settings, unless another one is named."""

    @property
    def all(self) -> list[Source]:
        return [source for source in (self.settings, self.servers) if source is not None]


NOTHING = Found()


def named(path: str | Path) -> Source:
    """Read a settings file that somebody named.

    Raises:
        ConfigError: there is none, or it can't be read.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"there is no configuration file {path}")
    return _read(path)


def of_user(environment: Mapping[str, str]) -> Found:
    """Read what the user keeps in `$XDG_CONFIG_HOME/divingbell`, by default in `~/.config`.

    Raises:
        ConfigError: it is there, and can't be read, or another user could have put it there.
    """
    folder = user_folder(environment)
    return Found(*(_owned(folder / name) for name in (FILE_NAME, MCP_FILE_NAME)))


def _owned(path: Path) -> Source | None:
    # HOME may be another user's, as after `sudo -E`: what that user wrote would be run as root.
    if not path.is_file():
        return None
    try:
        return _read(path) if owned_folder.check_file(path) else None
    except owned_folder.NotOurs as refusal:
        raise ConfigError(f"{refusal}, or name the file to use: {_option(path)} FILE") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from None


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's own settings."""
    above = environment.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(above):  # a relative one would be a folder of the current one
        return Path(above) / "divingbell"
    return Path(environment.get("HOME") or "/") / ".config" / "divingbell"


def lying_at(path: Path) -> Source | None:
    """Read a file that nobody named, of which nothing is known; None if there is none.

    Raises:
        ConfigError: it is no file that a person could look at and trust.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        # A link could lead to a file that was trusted elsewhere, and give its paths another sense.
        raise _unfit(path, "is a link" if error.errno == errno.ELOOP else "can't be read") from None
    try:
        if reason := _fault(os.fstat(descriptor)):
            raise _unfit(path, reason)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_FOUND + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FOUND:
        raise _unfit(path, f"has more than {MAX_FOUND >> 10} KB")
    return Source(path, data)


def _fault(state: os.stat_result) -> str | None:
    if not stat.S_ISREG(state.st_mode):
        return "is no ordinary file"
    if state.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if state.st_mode & stat.S_IWOTH:
        return "can be changed by every user of this machine"
    return None


def with_list(settings: Source) -> Found:
    """Return settings of a folder together with the list of servers that goes with them.

    Raises:
        ConfigError: one of them can't be read, or is nothing to be trusted.
    """
    given = settings.settings().get("mcp_config")
    if not isinstance(given, str) or not given:
        return Found(settings, lying_at(settings.path.with_name(MCP_FILE_NAME)))
    listed = lying_at(list_path(settings.path, given))
    if listed is None:
        raise ConfigError(f"{settings.path}: there is no {given}, which mcp_config names")
    return Found(settings, listed)


def list_path(settings: Path, given: str) -> Path:
    """Return where the list is that a settings file names.

    Raises:
        ConfigError: there is no such home directory.
    """
    try:
        return settings.parent / Path(given).expanduser()
    except RuntimeError:
        raise ConfigError(f"{settings}: mcp_config: there is no such home directory") from None


def _read(path: Path) -> Source:
    try:
        return Source(path, path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from None


def _unfit(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} {reason}, so it is not used. Remove it, or name the file to use: "
        f"{_option(path)} FILE"
    )


def _option(path: Path) -> str:
    return "--config" if path.name == FILE_NAME else "--mcp-config"
