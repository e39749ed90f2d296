"""Landlock: the kernel's own list of paths that this process and its children may touch.

A second wall behind the mount namespace. The kernel grows it in numbered steps (its ABI); each
right is asked for only where the running kernel knows it, and a kernel without Landlock is told
to the caller, who reports it, and is no error.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence
from enum import IntFlag

# The same on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_TCP_BIND_AND_CONNECT = 0b11
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
_ABI_WITH_TCP = 4
_ABI_WITH_SCOPES = 6


class _Right(IntFlag):
    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIRECTORY = 1 << 3
    REMOVE_DIRECTORY = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHARACTER_DEVICE = 1 << 6
    MAKE_DIRECTORY = 1 << 7
    MAKE_REGULAR = 1 << 8
    MAKE_SOCKET = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK_DEVICE = 1 << 11
    MAKE_SYMBOLIC_LINK = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEVICE = 1 << 15


_FIRST_ABI = _Right((1 << 13) - 1)
_ADDED = {2: _Right.REFER, 3: _Right.TRUNCATE, 5: _Right.IOCTL_DEVICE}
_READ = _Right.EXECUTE | _Right.READ_FILE | _Right.READ_DIRECTORY
_MAKE_DEVICES = _Right.MAKE_CHARACTER_DEVICE | _Right.MAKE_BLOCK_DEVICE
# The kernel refuses a rule on a file that names rights which only a folder can have.
_OF_FILES = (
    _Right.EXECUTE | _Right.WRITE_FILE | _Right.READ_FILE | _Right.TRUNCATE | _Right.IOCTL_DEVICE
)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _call(what: str, number: int, *arguments: int | bytes | None) -> int:
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer: int = _libc.syscall(ctypes.c_long(number), *converted)
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return answer


def abi() -> int:
    """Return the version of Landlock that the kernel offers, 0 where there is none.

    Raises:
        OSError: The kernel gave an answer that does not mean absence.
    """
    try:
        return _call("landlock version", _CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError as error:
        # Not built in; switched off at boot; hidden by the filter of a container around us (the
        # question itself needs no permission, so nothing else answers EPERM).
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def restrict(read: Sequence[str], write: Sequence[str]) -> int:
    """Confine this thread, and all that it starts, to these paths and what is beneath them.

    `read` may be read and executed; `write` may also be changed in every way except for making
    devices. A path that does not exist is skipped. TCP, abstract sockets and signals to processes
    outside are closed where the kernel can. No new privileges must have been set. Where the
    kernel lacks REFER (ABI 1), a rename from one folder to another fails with EXDEV.

    Returns:
        The version of Landlock in force, 0 where the kernel has none and nothing was confined.

    Raises:
        OSError: A path can't be opened for a reason other than absence, or the kernel refused.
    """
    version = abi()
    if version == 0:
        return 0
    handled = _FIRST_ABI
    for since, right in _ADDED.items():
        if version >= since:
            handled |= right
    # struct landlock_ruleset_attr. An older kernel takes the longer struct if the rest is zero.
    attributes = struct.pack(
        "QQQ",
        handled,
        _TCP_BIND_AND_CONNECT if version >= _ABI_WITH_TCP else 0,
        _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= _ABI_WITH_SCOPES else 0,
    )
    ruleset = _call("landlock ruleset", _CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in read:
            _allow(ruleset, path, _READ)
        for path in write:
            _allow(ruleset, path, handled & ~_MAKE_DEVICES)
        _call("landlock restrict", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: _Right) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        # struct landlock_path_beneath_attr, which is packed.
        rule = struct.pack("=Qi", rights, descriptor)
        _call(f"landlock rule for {path}", _ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
