"""The command, run as users run it: another process, its output, its exit status."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE = 60.0
"""Seconds that any one step may take on a machine that is very busy."""
COMMAND = Path(sys.executable).with_name("divingbell")
PNG = b"\x89PNG\r\n\x1a\n"
"""How each picture of that kind begins."""

Bell = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    """Ours, without the settings of whoever runs the tests, and with a lean sandbox."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith("DIVINGBELL_")}
    if home := os.environ.get("DIVINGBELL_HOME"):
        ours["DIVINGBELL_HOME"] = home
    return ours | {"DIVINGBELL_PRELOAD": "", "COLUMNS": "200"} | more


def runner(folder: Path, command: Sequence[str | Path] = (COMMAND,), **always: str) -> Bell:
    """Runs the command in a folder, with these variables in its environment."""

    def run(
        *arguments: str, stdin: str = "", program: str | Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*(command if program is None else (program,)), *arguments],
            input=stdin.encode(),
            capture_output=True,
            cwd=folder,
            env=environment(**{**always, **more}),
            timeout=PATIENCE,
            check=False,
        )
        # Not text=True: that would turn each carriage return into a newline.
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run
