"""The system calls that the standard library lacks, through ctypes.

Each function raises OSError with the kernel's answer. Nothing here decides anything.
"""

import ctypes
import errno
import itertools
import os
import platform
import signal
from collections.abc import Iterable

MACHINE = platform.machine()
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}
_CAPSET_NUMBER = {"x86_64": 126, "aarch64": 91}
_PIVOT_ROOT_NUMBER = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR_NUMBER = 442

CLONE_NEWNS = 0x00020000
CLONE_PARENT = 0x00008000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_CLONE_CHILD_CLEARTID = 0x00200000
_CLONE_CHILD_SETTID = 0x01000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4
MOUNT_ATTR_NOEXEC = 8
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_TID_ADDRESS = 40
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECBIT_NO_SETUID_FIXUP = 4
_LAST_CAPABILITY = 63
CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7
_HUGE = 2 << 20
_MADV_COLLAPSE = 25

_libc = ctypes.CDLL(None, use_errno=True)
# Python's own fork hooks and the clone between them must run with the interpreter lock held.
_locked = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_locked.syscall.restype = ctypes.c_long


def _check(answer: int, what: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return answer


def _call(what: str, number: int, *arguments: ctypes.c_long | bytes) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *arguments), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def clone(flags: int) -> int:
    """Fork with namespace flags; return the child's pid, 0 in the child.

    A bare clone leaves glibc's idea of the thread id behind, as its own fork would not: the
    kernel is asked to write it where glibc keeps it (where the kernel tells that address).
    """
    address = ctypes.c_void_p()
    if _libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0 and address.value:
        flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
    thread = ctypes.c_long(address.value or 0)
    zero = ctypes.c_long(0)
    tail = (thread, zero) if MACHINE == "x86_64" else (zero, thread)
    number = ctypes.c_long(_CLONE_NUMBER[MACHINE])
    everything = ctypes.c_long(flags | signal.SIGCHLD)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = _locked.syscall(number, everything, zero, zero, *tail)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    error = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, f"clone: {os.strerror(error)}")
    return pid


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    answer = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(answer, f"mount {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, flags=MS_BIND | MS_REC)


def mount_attributes(target: str, attributes: int) -> None:
    """Add attributes (read-only, nosuid …) to a mount and all below it (Linux 5.12)."""
    # struct mount_attr: attr_set, attr_clr, propagation, userns_fd
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    answer = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR_NUMBER),
        ctypes.c_long(_AT_FDCWD),
        target.encode(),
        ctypes.c_long(_AT_RECURSIVE),
        ctypes.byref(wanted),
        ctypes.c_long(ctypes.sizeof(wanted)),
    )
    _check(answer, f"mount_setattr {target}")


def enter_root(path: str) -> None:
    """Make `path`, which is a mount, the root, and let go of everything outside it."""
    os.chdir(path)
    # Both names are ".": the old root ends up on top of the new one and is then detached,
    # which needs no folder to put it in.
    _call("pivot_root", _PIVOT_ROOT_NUMBER[MACHINE], b".", b".")
    _check(_libc.umount2(b".", ctypes.c_int(MNT_DETACH)), "umount the old root")
    os.chdir("/")


def _prctl(option: int, value: int, second: int = 0) -> None:
    _check(
        _libc.prctl(
            ctypes.c_int(option),
            ctypes.c_ulong(value),
            ctypes.c_ulong(second),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
        ),
        f"prctl {option}",
    )


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent thread ends. Cleared by setresuid: call it afterwards."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def set_dumpable(dumpable: bool) -> None:
    """Not dumpable: processes of the same uid can neither trace it nor open its memory."""
    _prctl(_PR_SET_DUMPABLE, int(dumpable))


def forbid_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def own_namespaces_as(uid: int) -> None:
    """As root: give the user namespaces that this process makes from now on to `uid`.

    What is used inside counts against the quotas of whoever owns the namespace, too: root's would
    be the host's own. Files are opened as before, and capabilities stay.
    """
    _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    os.setresuid(-1, uid, -1)
    _libc.setfsuid(ctypes.c_uint(os.getuid()))


def drop_capabilities(kept: Iterable[int] = ()) -> None:
    """Give up every capability: effective, permitted, inheritable, ambient and bounding.

    This process keeps those in `kept`, and no program that it starts can have even them.
    """
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # past the last one that this kernel knows
    try:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a kernel that has none, as gVisor's
            raise
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    mask = sum(1 << capability for capability in kept)
    # Effective, permitted and inheritable; then the same for numbers from 32 on.
    sets = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    answer = _libc.syscall(
        ctypes.c_long(_CAPSET_NUMBER[MACHINE]), ctypes.byref(header), ctypes.byref(sets)
    )
    _check(answer, "capset")


def join_pages() -> None:
    """Put what this process has written onto huge pages, as far as the kernel will (Linux 6.1).

    A fork then copies one entry where it copied 512. A write after the fork still copies only
    one small page.
    """
    with open("/proc/self/maps", encoding="utf-8") as file:
        areas = [line.split() for line in file]
    for area in areas:
        if area[1] == "rw-p" and (len(area) == 5 or area[5] == "[heap]"):
            start, end = (int(part, 16) for part in area[0].split("-"))
            for at in range(-(-start // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                _libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(_HUGE), _MADV_COLLAPSE)


def close_all_but(*kept: int) -> None:
    """Close every descriptor above 2 except those."""
    borders = [2, *sorted(kept), os.sysconf("SC_OPEN_MAX")]
    for below, above in itertools.pairwise(borders):
        os.closerange(below + 1, above)


def flush_c_output() -> None:
    """Flush what C code has written with stdio."""
    _libc.fflush(None)


def buffer_c_output_by_line() -> None:
    """C's stdout is a pipe here and would only be written in blocks: make it stream."""
    stdout = ctypes.c_void_p.in_dll(_libc, "stdout")
    _libc.setvbuf(stdout, None, 1, 0)
