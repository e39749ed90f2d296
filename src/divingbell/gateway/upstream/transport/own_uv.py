"""The uv and uvx that came with Divingbell, for servers where PATH has none.

Many lists start their servers by `uvx`. It is installed beside our own interpreter, in a folder
that is on PATH only while its virtual environment is active.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

PROGRAMS = ("uv", "uvx")
"""No others: what else lies in that folder was not meant for servers."""


def program_for(command: str, environment: Mapping[str, str]) -> str:
    """Return what to start for a command: ours if it is uv and PATH has none, else itself."""
    if command not in PROGRAMS or shutil.which(command, path=environment.get("PATH", os.defpath)):
        return command
    folders = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    ours = (folder / command for folder in folders)
    return next((str(path) for path in ours if os.access(path, os.X_OK)), command)
