"""A folder that somebody cloned, and commands that are run in it."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from divingbell.settings.sources import Found
from divingbell.settings.trust import Trust, find
from tests.surfaces.cli.command import COMMAND, PATIENCE, environment

QUESTION = "Trust this, until it changes? [y/N] "
# The terminal must be the process's own, as it is for whoever types a command.
_AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Clone:
    """A folder with settings that start a program, and the home of whoever cloned it."""

    def __init__(self, above: Path) -> None:
        self.folder, self.home = above / "clone", above / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.settings, self.list = self.folder / "divingbell.toml", self.folder / "mcp.json"
        self.mark = above / "started"
        self.settings.write_text(
            f'pool = 0\n[servers.evil]\ncommand = "touch"\nargs = ["{self.mark}"]\n'
            'env = {TOKEN = "${GITHUB_TOKEN:-none}"}\n'
        )
        self.environment = {"HOME": str(self.home)}
        self.trust = Trust(above / "trusted.json")
        self.asked: list[str] = []
        self.told: list[str] = []

    def found(self, answer: bool | None = None, *, with_list: bool = True) -> Found:
        def ask(found: Found, reason: str) -> bool:
            self.asked.append(reason)
            return bool(answer)

        return find(
            self.folder,
            self.environment,
            with_list=with_list,
            trust=self.trust,
            ask=None if answer is None else ask,
            tell=self.told.append,
        )

    @property
    def command_environment(self) -> dict[str, str]:
        data = str(self.home / "data")
        ours = environment(XDG_DATA_HOME=data, XDG_CONFIG_HOME=str(self.home / ".config"))
        ours.setdefault("DIVINGBELL_HOME", os.path.expanduser("~/.cache/divingbell"))
        return ours

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command where nobody can be asked."""
        return subprocess.run(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.command_environment | variables,
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )

    def at_terminal(self, typed: str, *arguments: str) -> tuple[int, str]:
        """Run a command at a terminal, type that when it asks; return its status and its words."""
        with terminal() as (screen, theirs):
            process = subprocess.Popen(
                [sys.executable, "-c", _AT_TERMINAL, COMMAND, *arguments],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=self.folder,
                env=self.command_environment,
                start_new_session=True,
            )
            os.set_blocking(screen, False)
            seen, answered, ends = "", False, time.monotonic() + PATIENCE
            while process.poll() is None or select.select([screen], [], [], 0)[0]:
                if select.select([screen], [], [], 0.1)[0]:
                    seen += os.read(screen, 65536).decode()
                if QUESTION in seen and not answered:
                    answered = True
                    os.write(screen, typed.encode())
                if time.monotonic() > ends:
                    process.kill()
            return process.wait(PATIENCE), seen


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal: the person's side of it, and the program's."""
    screen, theirs = pty.openpty()
    try:
        yield screen, theirs
    finally:
        os.close(screen)
        os.close(theirs)
