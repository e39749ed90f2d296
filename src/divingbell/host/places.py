"""The folder for what is to last: not a cache, and nobody else's business."""

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
        home = Path(environment.get("HOME") or Path.home())
        return home / ".local" / "share" / "divingbell"
    except RuntimeError:
        raise ConfigError(
            "this user has no home directory: set XDG_DATA_HOME to a folder for what is kept"
        ) from None
