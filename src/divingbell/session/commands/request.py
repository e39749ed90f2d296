"""The request for a command: checked, and written as bytes for the command server inside."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from divingbell.command import CommandLine, CommandOptions
from divingbell.errors import InvalidInput
from divingbell_inside import frames, layout

MAX_WORD = (1 << 17) - 1
"""Bytes of one word, or of a text for the shell: Linux takes no longer one."""
MAX_WORDS = 1 << 19
"""Bytes of all words and of the environment together: Linux has room for 2 MB."""
MAX_INPUT = frames.MAX_BODY - (4 << 20)
"""The rest of a frame is for the words, which as JSON can be six times as long."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command that can be given to a session."""

    words: bytes
    """What the command server is asked for, as JSON."""
    cwd: str
    input: bytes
    timeout: float | None


def requested(
    command: CommandLine, options: CommandOptions, session_env: Mapping[str, str]
) -> CommandRequest:
    """Return the request for a command.

    Raises:
        InvalidInput: something of it can't be given to a session; the message says what.
    """
    unknown = sorted(set(options) - CommandOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(CommandOptions.__annotations__)
        raise InvalidInput(f"a command has no option {unknown[0]!r}: there are {known}")
    words = _words(command)
    env = {**session_env, **_env(options.get("env"))}
    cwd = _checked("cwd", options.get("cwd", layout.WORKSPACE))
    asked = {"text": "" if words else command, "words": words, "cwd": cwd, "env": env}
    size = sum(len(each.encode()) for each in (*words, *env, *env.values()))
    if size > MAX_WORDS:
        raise InvalidInput(
            f"the words and the environment of a command have {size:,} bytes, {MAX_WORDS:,} are "
            "allowed: put large data into a file with session.files.put()"
        )
    return CommandRequest(
        words=json.dumps(asked).encode(),
        cwd=cwd,
        input=_input(options.get("input", b"")),
        timeout=_timeout(options.get("timeout")),
    )


def text_of(command: CommandLine) -> str:
    """Return a command as it is written for a shell."""
    return command if isinstance(command, str) else shlex.join(command)


def _words(command: CommandLine) -> list[str]:
    """Return the checked words; none where it is a text for the shell."""
    if isinstance(command, str):
        if not _checked("command", command).strip():
            raise InvalidInput("the command is empty: write what is to be run")
        return []
    if isinstance(command, bytes | bytearray) or not isinstance(command, Sequence):
        kind = type(command).__name__
        raise InvalidInput(f"a command is a text or a list of words, not {kind}")
    words = [_checked("word", word) for word in command]
    if not words or not words[0]:
        raise InvalidInput("the list of words is empty: the first is the program to be run")
    return words


def _env(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"env must be a mapping of texts, not {type(given).__name__}")
    for name in given:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"env: {name!r} can't be the name of a variable: letters, digits and _ can"
            )
    return {name: _checked(f"env[{name!r}]", value) for name, value in given.items()}


def _checked(what: str, text: object) -> str:
    """Return a text that a program can be given."""
    if not isinstance(text, str):
        raise InvalidInput(f"the {what} must be text, not {type(text).__name__}")
    if "\0" in text:
        raise InvalidInput(f"the {what} has a NUL character in it, which no program can be given")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the {what} is not valid text: {error.reason}") from None
    if size > MAX_WORD:
        raise InvalidInput(
            f"the {what} has {size:,} bytes, {MAX_WORD:,} are allowed: put a long script into a "
            "file with session.files.put(), and run that"
        )
    return text


def _input(given: object) -> bytes:
    if not isinstance(given, str | bytes | bytearray):
        raise InvalidInput(f"input must be text or bytes, not {type(given).__name__}")
    try:
        data = given.encode() if isinstance(given, str) else bytes(given)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the input is not valid text: {error.reason}") from None
    if len(data) > MAX_INPUT:
        raise InvalidInput(
            f"the input has {len(data):,} bytes, {MAX_INPUT:,} are allowed: put it into a file "
            "with session.files.put(), and have the command read that"
        )
    return data


def _timeout(given: object) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise InvalidInput(f"the timeout must be more than 0 seconds, not {given!r}")
    return float(given)
