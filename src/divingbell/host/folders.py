"""Folders on the host's disk: of one process, with one for each of its sessions.

Workspaces for those who need gigabytes are there, which hostile code fills: the host never reads
those, it only removes them, without following links. So are the sockets of containers.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from divingbell.host import owned_folder
from divingbell.host.cgroups import own_name

_ATTEMPTS, _PAUSE = 100, 0.01
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HostFolders:
    """One folder for this process, in it one for each session."""

    def __init__(self, above: Path, on_left: Callable[[Path], None] = lambda left: None) -> None:
        """Make the folder; `on_left` sees each one that a process which is gone has left.

        Raises:
            NotOurs: another user could change what is in `above`.
        """
        owned_folder.make(above)
        for left in above.glob("divingbell-*-*"):
            if (lock := _lock(left)) is not None:
                on_left(left)
                remove_tree(left)
                os.close(lock)
        self.path = self._own = above / own_name()
        # Held as long as this process lives, in whatever container: the folder is not left over.
        self._held = _make_locked(self._own)

    def make(self, name: str, owner: int | None) -> str:
        path = self.path / name
        path.mkdir(mode=0o700)
        if owner is not None:
            os.chown(path, owner, owner, follow_symlinks=False)
        return name

    def remove(self, name: str) -> None:
        remove_tree(self.path / name)

    def close(self) -> None:
        remove_tree(self._own)
        os.close(self._held)


class Workspaces(HostFolders):
    """Folders that sessions write to, some with uids of their own, which must get there.

    A session can give its folder and what is in it any mode, setuid too. Only the folder above,
    which is closed to everyone but this process, keeps other users of the machine out.
    """

    def __init__(self, above: Path) -> None:
        super().__init__(above)
        self.path = self._own / "sessions"
        self.path.mkdir()
        self.path.chmod(0o711)


def _make_locked(path: Path) -> int:
    """Make a folder and lock it, although another process may take it for left over meanwhile."""
    for _ in range(_ATTEMPTS):
        path.mkdir(mode=0o700, exist_ok=True)
        if (lock := _lock(path)) is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return lock
            os.close(lock)
        time.sleep(_PAUSE)
    raise OSError(errno.EBUSY, "it can't be locked", str(path))


def is_left_over(path: Path) -> bool:
    """Whether the process that made this folder of its own has ended."""
    if not path.exists():
        return True
    lock = _lock(path)
    if lock is not None:
        os.close(lock)
    return lock is not None


def _lock(path: Path) -> int | None:
    """Return a descriptor with the lock on a folder; None where another process has it."""
    try:
        descriptor = os.open(path, _FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_tree(path: Path) -> None:
    """Remove a tree that hostile code has built: any depth, any mode, no link followed, although
    whoever built it may still be there and exchange one for the other.

    Each folder is flattened into the top one before it is emptied, so that neither the length
    of a path nor the number of open folders grows with the depth.
    """
    try:
        top = _open_up(path)
    except FileNotFoundError:
        return
    try:
        while _empty_one_level(top):
            pass
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        path.rmdir()


def _empty_one_level(top: int) -> bool:
    """Unlink files of the top folder, lift the content of its folders; True while any is left."""
    left = False
    for name in os.listdir(top):
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            continue
        left = True
        folder = _open_up(name, top)
        try:
            for below in os.listdir(folder):
                if stat.S_ISDIR(os.stat(below, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.close(_open_up(below, folder))  # else it may not be moved
                    lifted = f"lifted-{os.urandom(12).hex()}"
                    os.rename(below, lifted, src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(below, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)
    return left


def _open_up(name: str | Path, above: int | None = None) -> int:
    """Open a folder that its owner may have closed. A link is refused, and nothing behind it
    changed: the mode is set on what was opened, not on what has the name by then."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        with contextlib.suppress(OSError):
            os.chmod(f"/proc/self/fd/{found}", 0o700)
        return os.open(".", _FOLDER, dir_fd=found)
    finally:
        os.close(found)
