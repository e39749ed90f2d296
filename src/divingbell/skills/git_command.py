"""The git command, held short: what a repository of others says starts nothing on this machine.

No hook runs, no configuration of the system, the user or a repository counts beyond our own, nobody
is asked for a password, and addresses are of three kinds. Nothing is ever checked out: there are no
links, filters or submodules where there are no files. Each run has an end: in time, in processor
time, in memory, and in the bytes that it may write to one file, its output included.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import ConfigError, SkillRefused
from divingbell.host import beside
from divingbell.text import one_line

TIMEOUT = 120.0
"""Seconds that git has for one thing, a fetch over a slow line among them."""
PROCESSOR_SECONDS = 60
MEMORY = 2 << 30
"""Bytes of address space. A fetch over TLS maps a few hundred megabytes."""
MOST_FETCHED = 256 << 20
"""Bytes of one file that git writes: a repository is fetched as one pack."""
MOST_WORDS = 500
PROTOCOLS = ("file", "https", "ssh")
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})"
_PATH = r"[A-Za-z0-9._~/%+,@=-]{1,1000}"
_ADDRESS = re.compile(
    rf"https://{_HOST}(?::\d{{1,5}})?/{_PATH}"
    rf"|ssh://(?:[A-Za-z0-9._]{{1,64}}@)?{_HOST}(?::\d{{1,5}})?/{_PATH}"
    rf"|[A-Za-z0-9._]{{1,64}}@{_HOST}:(?![:-]){_PATH}"
    rf"|file:///{_PATH}"
)
_LOOKS_LIKE_ONE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[^/]+@[^/]+:")
_CONFIGURATION = {
    "core.hooksPath": "/dev/null",
    "core.symlinks": "false",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # one pack, whose size is limited, and not thousands of files
    "fetch.fsckObjects": "true",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "init.defaultBranch": "main",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "20",
}
_PASSED_ON = (
    "LOGNAME",
    "PATH",
    "SSH_AUTH_SOCK",
    "USER",
    "HTTPS_PROXY",
    "NO_PROXY",
    "https_proxy",
    "no_proxy",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
)
"""Variables that git gets of ours: to find ssh and its keys, and the way out of the house. HOME is
for ssh alone: over https git would send what ~/.netrc has, to wherever a server leads it."""
_SSH = "ssh -oBatchMode=yes -oForwardAgent=no -oPermitLocalCommand=no"
# `ulimit -f` counts blocks of 512 bytes, `-v` kilobytes. Limits that are set in the child by Python
# would be set between fork and exec, where a program with threads may hang.
_LIMITED = 'ulimit -f "$1" && ulimit -v "$2" && ulimit -t "$3" && shift 3 && exec "$@"'


class GitFailed(SkillRefused):
    """Raised where git could not do what it was asked to; the message has its words."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


def looks_like_address(place: str) -> bool:
    """Whether a place is meant as the address of a repository, and not as a folder."""
    return _LOOKS_LIKE_ONE.match(place) is not None


def checked_address(place: str) -> str:
    """Return the address of a repository, as it is known by.

    Raises:
        SkillRefused: it is none of the three kinds, or holds a password.
    """
    if not _ADDRESS.fullmatch(place):
        raise SkillRefused(
            f"{one_line(place, MOST_WORDS)} is no address of a git repository that is used here: "
            "https://host/path, ssh://user@host/path, user@host:path or file:///path, without a "
            "password in it"
        )
    return place.rstrip("/")


@dataclass(frozen=True, slots=True)
class Git:
    """git, for one bare repository of our own."""

    folder: Path

    def __call__(
        self,
        *arguments: str,
        given: bytes = b"",
        most: int = MOST_FETCHED,
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return what git prints, of at most so many bytes.

        Raises:
            GitFailed: it did not do what it was asked to, or not within its limits.
            ConfigError: there is no git on this machine.
        """
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(given)
            stdin.seek(0)
            process = subprocess.Popen(
                [*_limits(most), *self._command(), *arguments],
                cwd="/",
                env=_environment() | dict(variables or {}),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
            is_late = _await(process)
            if process.returncode or is_late:
                stderr.seek(0)
                raise _failure(arguments[0], process.returncode, is_late, stderr.read(8 << 10))
            stdout.seek(0)
            return stdout.read()

    def says(self, *arguments: str) -> bool:
        """Whether git answers a question with yes (0), rather than with no (1).

        Raises:
            GitFailed: it did neither.
        """
        try:
            self(*arguments)
        except GitFailed as error:
            if error.status == 1:
                return False
            raise
        return True

    def _command(self) -> list[str]:
        found = shutil.which("git")
        if found is None:
            raise ConfigError(
                "there is no git on this machine: install it (Debian, Ubuntu: apt install git), or "
                "name a catalogue that is a folder"
            )
        settings = [word for pair in _CONFIGURATION.items() for word in ("-c", "=".join(pair))]
        return [found, f"--git-dir={self.folder}", *settings]


def _limits(most: int) -> list[str]:
    blocks, kilobytes = -(-most // 512), MEMORY >> 10
    return ["/bin/sh", "-c", _LIMITED, "sh", str(blocks), str(kilobytes), str(PROCESSOR_SECONDS)]


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return kept | {
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
        "GIT_ASKPASS": "/bin/false",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_SSH_COMMAND": f"HOME={shlex.quote(os.environ.get('HOME', '/'))} {_SSH}",
        "GIT_SSH_VARIANT": "ssh",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": "/dev/null",  # where it is not set, the home of the user is looked up
    }


def _await(process: "subprocess.Popen[bytes]") -> bool:
    """Wait for the end of a process; return whether it was late, and was ended."""
    try:
        with beside.ending(process):
            process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.wait()
        return True
    return False


def _failure(what: str, status: int, is_late: bool, said: bytes) -> GitFailed:
    words = one_line(said.decode("utf-8", "replace"), MOST_WORDS)
    if is_late:
        words = f"it took more than {TIMEOUT:g} seconds"
    elif status < 0 or (status > 128 and not words):
        words = f"it took more memory, time or disk than it may: {words}".rstrip(": ")
    return GitFailed(f"git {what} failed: {words or f'status {status}'}", status)
