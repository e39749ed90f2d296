"""A Divingbell whose sandbox does not start before the test lets it."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from divingbell.host import owned_folder, profile

WAITING = "waiting for another process that prepares the same profile"
"""What it says as long as it is held back."""


class HeldBack:
    """A home in which the profile is missing, and somebody prepares it: the test."""

    def __init__(self, home: Path) -> None:
        real = profile.find()
        assert real is not None, "./dev test prepares it"
        self._real = real
        self.profiles = home / "profiles"
        owned_folder.make(home)
        owned_folder.make(self.profiles)
        self._lock = os.open(self.profiles / f".{real.path.name}.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.environment = {"DIVINGBELL_HOME": str(home)}

    def release(self) -> None:
        """The profile is there, and the sandbox can start."""
        made = self.profiles / self._real.path.name
        shutil.copytree(self._real.path, made, symlinks=True, copy_function=_linked)
        self.abandon()

    def abandon(self) -> None:
        """The profile is not there: it has to be prepared by whoever needs it."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@contextlib.contextmanager
def held_back(folder: Path) -> Iterator[HeldBack]:
    """Hold it back for the block, or until it is released."""
    held = HeldBack(folder / "home")
    try:
        yield held
    finally:
        held.abandon()
