"""Where Divingbell keeps what is to last: not a cache, and nobody else's business."""

import os
from collections.abc import Mapping
from pathlib import Path

from divingbell.errors import ConfigError


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `$XDG_DATA_HOME/divingbell`, by default `~/.local/share/divingbell`. It is not made.

    Raises:
        ConfigError: this user has no home directory.
    """
    above = environment.get("XDG_DATA_HOME", "")
    if os.path.isabs(above):  # the specification says to ignore a relative one
        return Path(above) / "divingbell"
    try:
        return Path.home() / ".local" / "share" / "divingbell"
    except RuntimeError:
        raise ConfigError(
            "this user has no home directory: set XDG_DATA_HOME to a folder for what is kept"
        ) from None


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can look into, if it is not there.

    Raises:
        OSError: it can't be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
