"""The kernel of this machine: what of a sandbox it allows, looked at and tried.

Nothing here changes the machine. What is tried (a namespace, a mount) is tried in a child process.
"""

import ctypes
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from divingbell.host.finding import Finding
from divingbell_inside import landlock

ARCHITECTURES = ("x86_64", "aarch64")
OLDEST_KERNEL = (5, 12)
"""mount_setattr, which makes the root read-only, came with it."""
TRY_TIMEOUT = 10.0
_NOT_FROM_HERE = ("-P",)
"""Python would take a module from the current folder, where a stranger's of that name may lie."""
_SYSCTL = Path("/proc/sys")

_NEWUSER, _NEWNS, _NEWPID = 0x10000000, 0x00020000, 0x20000000
_MS_NOSUID_NODEV_NOEXEC, _MS_PRIVATE_REC = 2 | 4 | 8, (1 << 18) | 16384
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_EFAULT = 14

_APPARMOR_PROFILE = """\
printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\n\
profile divingbell {python} flags=(unconfined) {{\\n  userns,\\n}}\\n' \
| sudo tee /etc/apparmor.d/divingbell && sudo apparmor_parser -r /etc/apparmor.d/divingbell"""


def findings() -> list[Finding]:
    """Look at the kernel, the most basic first."""
    found = [_system()]
    if sys.platform == "linux":
        found += [_kernel(), _user_namespaces(), _proc(), _seccomp(), _landlock()]
    return found


def why_not() -> str | None:
    """Return the most likely cause of a local backend that does not work, as one sentence."""
    checks: list[Callable[[], Finding]] = [_system]
    if sys.platform == "linux":
        checks += [_kernel, _user_namespaces, _proc, _seccomp]
    for check in checks:
        finding = check()
        if finding.blocking:
            return f"{finding.detail}; {finding.advice}" if finding.advice else finding.detail
    return None


def _missing(name: str, detail: str, advice: str) -> Finding:
    return Finding(name, "missing", detail, advice, blocking=True)


def _system() -> Finding:
    machine = platform.machine()
    detail = f"{platform.system()} on {machine}"
    if sys.platform != "linux":
        return _missing(
            "system", f"{detail}: the local backend needs Linux", "run it in a Linux machine"
        )
    if machine not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        return _missing("system", f"{detail}: only {known} are known", f"use {known}")
    return Finding("system", "ok", detail)


def _kernel(release: str | None = None) -> Finding:
    release = release or platform.release()
    match = re.match(r"(\d+)\.(\d+)", release)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST_KERNEL:
        return _missing(
            "kernel",
            f"Linux {release}: 5.12 or later is needed (mount_setattr)",
            "install a newer kernel (Debian, Ubuntu: apt full-upgrade, then reboot)",
        )
    return Finding("kernel", "ok", f"Linux {release}")


# User namespaces


def _sysctl(name: str) -> int | None:
    try:
        return int((_SYSCTL / name.replace(".", "/")).read_text())
    except (OSError, ValueError):
        return None


def _user_namespaces() -> Finding:
    name = "user namespaces"
    if _sysctl("user.max_user_namespaces") == 0:
        return _missing(
            name,
            "user namespaces are off (user.max_user_namespaces = 0)",
            "run `sudo sysctl -w user.max_user_namespaces=15000`",
        )
    refusal = _try("namespaces")
    if refusal is None:
        return Finding(name, "ok", "a process can make its own")
    if os.geteuid() != 0 and _sysctl("kernel.unprivileged_userns_clone") == 0:
        return _missing(
            name,
            "user namespaces are for root only (kernel.unprivileged_userns_clone = 0)",
            "run `sudo sysctl -w kernel.unprivileged_userns_clone=1`",
        )
    if os.geteuid() != 0 and _sysctl("kernel.apparmor_restrict_unprivileged_userns") == 1:
        python = os.path.realpath(sys.executable)
        return _missing(
            name,
            "AppArmor keeps user namespaces from programs without a profile "
            "(kernel.apparmor_restrict_unprivileged_userns = 1)",
            f"give this Python a profile: {_APPARMOR_PROFILE.format(python=python)}\n"
            "or allow it to all: "
            "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
        )
    return _missing(
        name,
        f"the kernel refuses a user namespace ({refusal})"
        + (", and this is a container" if _in_container() else ""),
        "start the container with `--security-opt seccomp=unconfined` (Docker's own filter "
        "refuses unshare), or run Divingbell outside of it"
        if _in_container()
        else "look for the reason with `unshare --user --map-root-user true`",
    )


def _proc() -> Finding:
    refusal = _try("proc")
    if refusal is None:
        return Finding("proc", "ok", "a sandbox can have a /proc of its own")
    if refusal.startswith("unshare"):
        return Finding("proc", "missing", "not tried: there are no user namespaces", "see above")
    return _missing(
        "proc",
        "a sandbox can't have a /proc of its own"
        + (", because parts of this container's /proc are masked" if _proc_is_masked() else "")
        + f" ({refusal})",
        "start the container with `--security-opt systempaths=unconfined` (Docker), "
        "`--security-opt unmask=ALL` (Podman) or `procMount: Unmasked` (Kubernetes), "
        "or run Divingbell outside of it",
    )


def _in_container() -> bool:
    if any(Path(path).exists() for path in ("/.dockerenv", "/run/.containerenv")):
        return True
    return "container" in os.environ


def _proc_is_masked() -> bool:
    """Whether anything is mounted over parts of /proc: the kernel then forbids a fresh one."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4].startswith("/proc/") for line in mounts)


class _Refused(Exception):
    """Raised where the kernel refuses what was tried; the message says what and why."""


def _try(attempt: str) -> str | None:
    """Make an attempt in a process of its own; return what was refused, None if nothing was.

    A fork will not do: this may be called in a process with threads.
    """
    command = [sys.executable, *_NOT_FROM_HERE, "-m", "divingbell.host.kernel", attempt]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TRY_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be tried: {error}"
    if answer.returncode == 0:
        return None
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[-1] if lines else f"the attempt ended with {answer.returncode}"


def _expect(answer: int, what: str) -> None:
    if answer != 0:
        raise _Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


def _enter_namespaces(libc: ctypes.CDLL) -> None:
    uid, gid = os.geteuid(), os.getegid()
    _expect(libc.unshare(_NEWUSER | _NEWNS | _NEWPID), "unshare")
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    except OSError as error:
        raise _Refused(f"unshare: uid_map: {error.strerror}") from None


def _mount_proc(libc: ctypes.CDLL) -> None:
    _enter_namespaces(libc)
    # Only a child is in the new pid namespace, and a /proc belongs to one.
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code:
            raise _Refused(f"mount of a /proc: {os.strerror(code) if code > 0 else 'killed'}")
        return
    code = 1
    try:
        libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_PRIVATE_REC), None)
        flags = ctypes.c_ulong(_MS_NOSUID_NODEV_NOEXEC)
        code = 0 if libc.mount(b"proc", b"/proc", b"proc", flags, None) == 0 else ctypes.get_errno()
    finally:
        os._exit(code)


# The walls of a session


def _seccomp() -> Finding:
    libc = ctypes.CDLL(None, use_errno=True)
    # A filter at address 0 is refused with EFAULT by a kernel that would take one.
    libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), None, 0, 0)
    if ctypes.get_errno() == _EFAULT:
        return Finding("seccomp", "ok", "filters can be installed")
    return _missing(
        "seccomp",
        "the kernel takes no seccomp filter (CONFIG_SECCOMP_FILTER)",
        "use a distribution's kernel: `grep SECCOMP_FILTER /boot/config-$(uname -r)` shows it",
    )


def _landlock() -> Finding:
    try:
        version = landlock.abi()
    except OSError as error:
        version, reason = 0, str(error)
    else:
        reason = "this kernel has none, or it is switched off"
    if version:
        return Finding("landlock", "ok", f"ABI {version}")
    return Finding(
        "landlock",
        "warn",
        f"{reason}: sandboxes do without this second wall",
        "on Linux 5.13 and later, add `landlock` to the list in the kernel parameter `lsm=`; "
        "`cat /sys/kernel/security/lsm` shows the list",
    )


def _main(attempt: str) -> int:
    """Make one attempt, in a process of its own, and say what was refused."""
    try:
        _ATTEMPTS[attempt](ctypes.CDLL(None, use_errno=True))
    except _Refused as refused:
        print(refused)
        return 1
    return 0


_ATTEMPTS = {"namespaces": _enter_namespaces, "proc": _mount_proc}

if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
