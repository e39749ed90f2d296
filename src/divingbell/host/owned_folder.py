"""Folders that nobody else can have planted, and that nobody else can change.

What Divingbell keeps it reads, obeys and runs: whoever may write there, or may put another folder
in its place, runs code as whoever started it. So every folder on the way, from the root down, must
belong to this user or to root, and nobody else may write to it. In one with the sticky bit, such as
/tmp, others may make folders of their own but not replace ours: it may be on the way, no more.
Where this holds nobody else can change that it does, so that a path may be used after the look.
"""

import errno
import grp
import os
import pwd
import stat
from pathlib import Path

from divingbell.errors import ConfigError

MOST_LINKS = 40
"""As many as the kernel follows."""
ELSEWHERE = (
    "name another folder (with DIVINGBELL_HOME, XDG_DATA_HOME, XDG_CONFIG_HOME, workspace "
    "or UV_CACHE_DIR)"
)
_ACCESS_LIST = "system.posix_acl_access"
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotOurs(ConfigError, PermissionError):
    """Raised where another user could decide what is in a folder; the message says what to do.

    It is an OSError too: for those who write something down it is one of the ways to fail.
    """

    def __init__(self, words: str) -> None:
        super().__init__(errno.EPERM, words)

    def __str__(self) -> str:
        return str(self.strerror)


def make(folder: Path, mode: int = 0o755) -> None:
    """Make a folder, and those above that are missing, with this mode whatever the umask says.

    Raises:
        NotOurs: another user could change what is there.
        OSError: it can't be made.
    """
    if not _walk(folder, mode):  # one of them was removed meanwhile
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))


def check(folder: Path) -> bool:
    """Return whether a folder is there.

    Raises:
        NotOurs: another user could change what is there, or make it first.
        OSError: one above it can't be looked into.
    """
    return _walk(folder, None)


def check_file(path: Path) -> bool:
    """Return whether a file is there; links to it are followed, and looked at.

    Raises:
        NotOurs: another user could change it, or put another one in its place.
        OSError: it is no ordinary file, or a folder above it can't be looked into.
    """
    return _walk(path, None, to_file=True)


def is_ours(opened: int) -> bool:
    """Whether nobody but this user and root can change a file that was opened."""
    return os.fstat(opened).st_uid in _trusted() and not _others_write(opened)


def _walk(folder: Path, mode: int | None, *, to_file: bool = False) -> bool:
    """Go there name by name, each opened in the folder before it: nothing is looked at twice."""
    left = list(reversed(folder.absolute().parts))
    links = 0
    shown, at = Path("/"), os.open("/", _LOOK)
    try:
        while left:
            _judge(at, shown, on_the_way=True)
            name = left.pop()
            try:
                below = _open(name, at, mode)
            except FileNotFoundError:
                return False
            if (target := _target(below, shown / name)) is None:
                os.close(at)
                shown, at = shown / name, below
            elif (links := links + 1) > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
            else:
                left += reversed(target.parts)  # if it begins with "/", that is opened next
        _judge(at, shown, on_the_way=False, is_file=to_file)
        return True
    finally:
        os.close(at)


def _target(opened: int, shown: Path) -> Path | None:
    """Return the path that a link leads to, and close it; None for all else."""
    found = os.fstat(opened)
    if not stat.S_ISLNK(found.st_mode):
        return None
    try:
        _judge_owner(found, shown)
        return Path(os.readlink("", dir_fd=opened))
    finally:
        os.close(opened)


def _open(name: str, above: int, mode: int | None) -> int:
    """Open what is there, whatever it is; with a mode, make a folder where there is nothing."""
    try:
        return os.open(name, _LOOK, dir_fd=above)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(name, mode, dir_fd=above)
    except FileExistsError:  # somebody was faster: it is looked at like any other
        return os.open(name, _LOOK, dir_fd=above)
    made = os.open(name, _FOLDER, dir_fd=above)
    os.fchmod(made, mode)
    return made


def _judge(opened: int, shown: Path, *, on_the_way: bool, is_file: bool = False) -> None:
    found = os.fstat(opened)
    if not (stat.S_ISREG if is_file else stat.S_ISDIR)(found.st_mode):
        reason = errno.EINVAL if is_file else errno.ENOTDIR
        raise OSError(reason, os.strerror(reason), str(shown))
    _judge_owner(found, shown)
    if _others_write(opened) and not (on_the_way and found.st_mode & stat.S_ISVTX):
        mend = f"look at what is in it, then `chmod go-w {shown}`, or {ELSEWHERE}"
        if found.st_mode & stat.S_ISVTX:
            mend = "name a folder of your own below it"
        raise NotOurs(
            f"{shown} can be written to by other users, who could put there what you then run: "
            + mend
        )


def _judge_owner(found: os.stat_result, shown: Path) -> None:
    if found.st_uid not in _trusted():
        raise NotOurs(
            f"{shown} belongs to {_name(found.st_uid)}, who could put there what you then run: "
            f"have it given to you, or {ELSEWHERE}"
        )


def _trusted() -> set[int]:
    # Who has the root folder has everything. In a container it may be a uid that has no name there.
    return {0, os.geteuid(), os.stat("/").st_uid}


def _others_write(opened: int) -> bool:
    found = os.fstat(opened)
    if found.st_mode & stat.S_IWOTH:
        return True
    # With an access list these bits are the most that anybody on it may do, whoever that is.
    return bool(found.st_mode & stat.S_IWGRP) and (
        not _is_private(found.st_gid, found.st_uid) or _has_access_list(opened)
    )


def _has_access_list(opened: int) -> bool:
    """Whether it may have one: what can't be looked at counts as one."""
    try:
        # By this path, because it may be opened for nothing but a look.
        os.getxattr(f"/proc/self/fd/{opened}", _ACCESS_LIST)
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def _is_private(group: int, user: int) -> bool:
    """Whether it is the group that many systems give each user, with nobody else in it."""
    try:
        name, found = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    if found.gr_name != name or not set(found.gr_mem) <= {name}:
        return False
    # Whose first group it is, is not among its members.
    return all(each.pw_uid == user for each in pwd.getpwall() if each.pw_gid == group)


def _name(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"the user with uid {user}"
