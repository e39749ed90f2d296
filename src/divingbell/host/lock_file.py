"""Locks between processes: a file that one of them holds, until it lets go or ends."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from divingbell.errors import ConfigError
from divingbell.host import beside, owned_folder

_LOOK_AGAIN = 0.05


@contextlib.contextmanager
def alone(path: Path, patience: float) -> Iterator[None]:
    """Enter a block in which no other process holds this file. It blocks: call it in a thread.

    The file and its folder, mode 700, are made where they are missing.

    Raises:
        ConfigError: it can't be made, or another process has held it for so many seconds.
        CalledOff: nobody waits for this work any more.
    """
    try:
        owned_folder.make(path.parent, 0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} can't be made: {error.strerror}") from None
    try:
        _take(descriptor, path, patience)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > end:
            raise ConfigError(
                f"another process has held {path} for {patience:g} seconds: wait for it to end, "
                "then try again"
            )
        beside.check()
        time.sleep(_LOOK_AGAIN)
