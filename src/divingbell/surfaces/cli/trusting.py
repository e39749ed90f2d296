"""`divingbell trust`, and the question that commands ask before they use a folder's files."""

import os
import sys
import termios
from pathlib import Path

from divingbell.errors import ConfigError
from divingbell.escapes import RESET
from divingbell.settings import disclosure, sources
from divingbell.settings.sources import FILE_NAME, Found
from divingbell.settings.trust import Asker, Trust, names, options
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import NOTE

MAX_ANSWER = 4096
NARROW = 80
"""Columns of a terminal that does not say how many it has."""
_STDIN, _STDERR = 0, 2
_PROMPT = "Trust this, until it changes? [y/N] "


def asker() -> Asker | None:
    """Return what asks the person at the terminal; None if nobody is there to be asked."""
    if not os.isatty(_STDIN) or not os.isatty(_STDERR):
        return None
    try:
        # Who reads in the background is stopped by the terminal, and waits there for ever.
        return _ask if os.tcgetpgrp(_STDIN) == os.getpgrp() else None
    except OSError:  # it is the terminal of another
        return None


def look(path: Path | None) -> int:
    """Show what the files of a folder would do, and ask whether they are trusted.

    Raises:
        ConfigError: there are none, or there is nobody to ask.
    """
    found = _files_at(path or Path())
    trust = Trust()
    if all(trust.standing(each) == "trusted" for each in found.all):
        print(f"{names(found.all)}: trusted already; `divingbell trust --revoke` takes it back")
        return exit_status.OK
    ask = asker()
    if ask is None:
        raise ConfigError(
            f"there is no terminal to ask at. Run `divingbell trust` at one; a script names the "
            f"file that it means instead: {options(found.all)}"
        )
    if not ask(found, "This is all that is in it:"):
        print("not trusted: commands ask again")
        return exit_status.FAILED
    trust.allow(found.all)
    print(f"{names(found.all)}: trusted until it changes")
    return exit_status.OK


def revoke(path: Path | None) -> int:
    """Trust the files of a folder no more."""
    gone = Trust().revoke(path or Path())
    for each in gone:
        print(f"{disclosure.shown(each)}: not trusted any more")
    if not gone:
        print("nothing there was trusted; `divingbell trust --list` shows what is")
    return exit_status.OK


def show() -> int:
    """List what is trusted."""
    trust = Trust()
    for path in trust.files():
        print(f"{disclosure.shown(path)}: {_state(Path(path), trust)}")
    return exit_status.OK


def _state(path: Path, trust: Trust) -> str:
    try:
        source = sources.lying_at(path)
    except ConfigError:
        return "can't be used any more"
    if source is None:
        return "is gone"
    return "trusted" if trust.standing(source) == "trusted" else "has changed, and is asked about"


def _files_at(path: Path) -> Found:
    """Return the files of a folder, or of the folder that a settings file lies in."""
    if not path.is_dir() and path.name != FILE_NAME:
        raise ConfigError(f"name a folder, or a {FILE_NAME}, not {path}")
    folder = (path if path.is_dir() else path.parent).resolve()
    source = sources.lying_at(folder / FILE_NAME)
    if source is None:
        raise ConfigError(f"there is no {FILE_NAME} in {folder}")
    return sources.with_list(source)


def _ask(found: Found, reason: str) -> bool:
    room = os.get_terminal_size(_STDERR)
    lines = disclosure.wrapped(disclosure.lines(found), room.columns or NARROW)
    if 0 < room.lines <= len(lines):
        lines.append(f"These are {len(lines)} lines: scroll up, and look at all of them.")
    shown = "".join(f"{line}\n" for line in lines)
    # What was typed before the question was there is no answer to it.
    termios.tcflush(_STDIN, termios.TCIFLUSH)
    print(f"{RESET}{NOTE}{reason}\n{shown}{_PROMPT}", end="", file=sys.stderr, flush=True)
    answer = os.read(_STDIN, MAX_ANSWER)
    if not answer.endswith(b"\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in (b"y", b"yes")
