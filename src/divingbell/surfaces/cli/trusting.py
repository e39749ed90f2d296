"""`divingbell trust`, and the question that commands ask before they use a folder's files."""

import os
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

from divingbell import sources
from divingbell.errors import ConfigError
from divingbell.sources import FILE_NAME, Found, Source
from divingbell.surfaces.cli import disclosure, exit_status
from divingbell.surfaces.cli.escapes import RESET
from divingbell.trust import Trust

NOTE = "· "
MAX_ANSWER = 4096
_STDIN, _STDERR = 0, 2
_PROMPT = "Trust this, until it changes? [y/N] "

Asker = Callable[[Found, str], bool]
"""Shows files and the reason for the question; returns whether they are trusted."""


def find(
    folder: Path,
    environment: Mapping[str, str],
    *,
    with_list: bool = True,
    trust: Trust | None = None,
    ask: Asker | None = None,
) -> Found:
    """Return the files that a command uses without their being named.

    They are those of the folder, once they are trusted, or else those of the user. Without
    `with_list` the folder's list of servers is left out, because another one is named.

    Raises:
        ConfigError: the folder's are not trusted, and there is nobody to ask.
    """
    settings = sources.lying_at(_real(folder) / FILE_NAME)
    if settings is None:
        return sources.of_user(environment)
    trust = trust or Trust()
    if ask is None and trust.standing(settings) != "trusted":
        # It is not even parsed: only a person who is asked has to see what is in it.
        raise ConfigError(_refusal([settings], trust))
    found = sources.with_list(settings) if with_list else Found(settings)
    doubtful = [each for each in found.all if trust.standing(each) != "trusted"]
    if not doubtful:
        return found
    if ask is None:
        raise ConfigError(_refusal(doubtful, trust))
    if ask(found, _reason(doubtful, trust)):
        trust.allow(found.all)
        return found
    _tell(f"going on without {_names(found.all)}: not trusted")
    return sources.of_user(environment)


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
    found = _named(path or Path())
    trust = Trust()
    if all(trust.standing(each) == "trusted" for each in found.all):
        print(f"{_names(found.all)}: trusted already; `divingbell trust --revoke` takes it back")
        return exit_status.OK
    ask = asker()
    if ask is None:
        raise ConfigError(
            f"there is no terminal to ask at. Run `divingbell trust` at one; a script names the "
            f"file that it means instead: {_options(found.all)}"
        )
    if not ask(found, "This is all that is in it:"):
        print("not trusted: commands ask again")
        return exit_status.FAILED
    trust.allow(found.all)
    print(f"{_names(found.all)}: trusted until it changes")
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


def _named(path: Path) -> Found:
    """The files of a folder, or of the folder that a settings file lies in."""
    settings = path / FILE_NAME if path.is_dir() else path
    if settings.name != FILE_NAME:
        raise ConfigError(f"name a folder, or a {FILE_NAME}, not {path}")
    source = sources.lying_at(_real(settings.parent) / FILE_NAME)
    if source is None:
        raise ConfigError(f"there is no {FILE_NAME} in {_real(settings.parent)}")
    return sources.with_list(source)


def _ask(found: Found, reason: str) -> bool:
    shown = "".join(f"| {line}\n" for line in disclosure.lines(found))
    # What was typed before the question was there is no answer to it.
    termios.tcflush(_STDIN, termios.TCIFLUSH)
    print(f"{RESET}{NOTE}{reason}\n{shown}{_PROMPT}", end="", file=sys.stderr, flush=True)
    answer = os.read(_STDIN, MAX_ANSWER)
    if not answer.endswith(b"\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in (b"y", b"yes")


def _reason(doubtful: list[Source], trust: Trust) -> str:
    if any(trust.standing(each) == "changed" for each in doubtful):
        return f"{_names(doubtful)} changed since you trusted it. This is all that is in it now:"
    return "This folder has settings that you did not look at yet. This is all that is in them:"


def _refusal(doubtful: list[Source], trust: Trust) -> str:
    changed = any(trust.standing(each) == "changed" for each in doubtful)
    state = "changed since it was trusted" if changed else "is not trusted yet"
    return (
        f"{_names(doubtful)} {state}, and there is no terminal to ask at. It could start "
        "programs on this machine. Look at it and run `divingbell trust` in that folder, or "
        f"name the file that you mean: {_options(doubtful)}"
    )


def _names(files: list[Source]) -> str:
    return " and ".join(disclosure.shown(str(each.path)) for each in files)


def _options(files: list[Source]) -> str:
    options = ["--config" if each.path.name == FILE_NAME else "--mcp-config" for each in files]
    return " ".join(f"{option} FILE" for option in options)


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _tell(line: str) -> None:
    print(NOTE + line, file=sys.stderr, flush=True)
