"""Folders that are held by those who use them: by a lock, which ends with its process."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_held: dict[Path, list[int]] = {}
"""The folders that this process uses, each with the descriptors that keep the lock: one for each
time that it was held. The folder of that name may be another one by now."""


class InUse(Exception):
    """Raised where a folder belongs to a process that runs."""


def hold(folder: Path) -> bool:
    """Keep a folder from being removed until it is released, or this process ends.

    Returns:
        False if it is gone already.
    """
    try:
        descriptor = _opened(folder)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        whole = os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        whole = False
    if not whole:
        os.close(descriptor)
        return False
    _held.setdefault(folder, []).append(descriptor)
    return True


def release(folder: Path) -> None:
    """Let go of a folder that was held, once: the longest hold ends."""
    if descriptors := _held.get(folder):
        os.close(descriptors.pop(0))


def times(folder: Path) -> int:
    """Return the number of times that this process holds a folder."""
    return len(_held.get(folder, ()))


@contextmanager
def unused(folder: Path) -> Iterator[None]:
    """Enter a block in which nobody holds the folder.

    Raises:
        InUse: a process that runs does.
    """
    descriptor = _opened(folder)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def removing(folder: Path, away: Path) -> Iterator[None]:
    """Remove a folder when the block has ended, unless it fails. It is renamed to `away` first, in
    one step: half of it must never be taken for the whole.

    Raises:
        InUse: a process that runs holds it.
    """
    with unused(folder):
        yield
        folder.rename(away)
        shutil.rmtree(away, ignore_errors=True)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
