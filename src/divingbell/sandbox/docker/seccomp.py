"""The filter of system calls in Docker's own form: what the local backend allows, and no more.

Inside, the supervisor adds the local backend's filter itself on top (see `container.seal`), for
which the one call that does so has to be left open here.
"""

import json
import stat
from typing import Any

from divingbell_inside.seccomp import ALLOWED, BY_ARGUMENT
from divingbell_inside.syscalls import NUMBERS

# A process that makes an x32 call is killed if that is not named here; the filter that is added
# inside answers such calls as the local backend does.
_ARCHITECTURES = {
    "x86_64": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"],
    "aarch64": ["SCMP_ARCH_AARCH64"],
}
_EPERM, _ENOSYS = 1, 38
_AF_UNIX = 1
_CLONE_NAMESPACE_FLAGS = 0x7E020000
_FILE_TYPES = (0, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK)
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_LEASES = (1024, 1026, 1040)
_MAP_HUGETLB, _MFD_HUGETLB = 0x40000, 0x4
_TERMINAL_TRICKS = (0x5412, 0x541C, 0x5423)


def _equal(index: int, value: int) -> dict[str, Any]:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _masked(index: int, mask: int, value: int) -> dict[str, Any]:
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _other(index: int, value: int) -> dict[str, Any]:
    return {"index": index, "value": value, "op": "SCMP_CMP_NE"}


# Each inner list is one rule: all of its conditions must hold. Any rule is enough.
_CONDITIONS: dict[str, list[list[dict[str, Any]]]] = {
    "clone": [[_masked(0, _CLONE_NAMESPACE_FLAGS, 0)]],
    "fcntl": [[_other(1, value) for value in _LEASES]],
    "ioctl": [[_other(1, value) for value in _TERMINAL_TRICKS]],
    "memfd_create": [[_masked(1, _MFD_HUGETLB, 0)]],
    "mmap": [[_masked(3, _MAP_HUGETLB, 0)]],
    "mknod": [[_masked(1, 0o170000, kind)] for kind in _FILE_TYPES],
    "mknodat": [[_masked(2, 0o170000, kind)] for kind in _FILE_TYPES],
    "personality": [[_equal(0, value)] for value in _PERSONALITIES],
    "prctl": [[]],
    "socket": [[_equal(0, _AF_UNIX)]],
    "socketpair": [[_equal(0, _AF_UNIX)]],
}


INOTIFY = frozenset({"inotify_init", "inotify_init1"})
"""What no container may share out: to bound it needs a user namespace of the session's own."""


def profile(machine: str, deny: frozenset[str] = frozenset()) -> str:
    """Return the profile for `machine` as JSON, as `--security-opt seccomp=` takes it.

    `deny` names further calls that shall answer EPERM.
    """
    known = NUMBERS[machine]
    allowed = sorted(name for name in ALLOWED - deny if name in known)
    by_argument = [name for name in BY_ARGUMENT if name in known and name in _CONDITIONS]
    refused = sorted(set(known) - set(allowed) - set(BY_ARGUMENT))
    rules: list[dict[str, Any]] = [
        {"names": allowed, "action": "SCMP_ACT_ALLOW"},
        {"names": refused, "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM},
    ]
    for name in by_argument:
        for conditions in _CONDITIONS[name]:
            rules.append({"names": [name], "action": "SCMP_ACT_ALLOW", "args": conditions})
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            # What no table of ours knows, and clone3: a C library then falls back.
            "defaultErrnoRet": _ENOSYS,
            "architectures": _ARCHITECTURES[machine],
            "syscalls": rules,
        }
    )
