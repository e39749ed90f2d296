"""Seals a freshly cloned process: its own root, identity and limits, before any user code.

The order matters. Files can be made only as a mapped uid, so the identity comes first. After
Landlock a mount is refused, so the mounts come before it. The seccomp filter comes last.
"""

import os
import resource
import socket
from dataclasses import dataclass

from divingbell_inside import kernel, landlock, layout, seccomp

_NO_PROGRAMS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_FIXED = ("sys", "sysrq-trigger", "irq", "bus", "fs", "pressure")
_MASKED = ("kcore", "keys", "kmsg", "latency_stats", "timer_list", "sched_debug", "kallsyms")
_MASKED_FOLDERS = ("acpi", "scsi")
_READ_ONLY = (
    kernel.MOUNT_ATTR_RDONLY
    | kernel.MOUNT_ATTR_NOSUID
    | kernel.MOUNT_ATTR_NODEV
    | kernel.MOUNT_ATTR_NOEXEC
)
MEMORY_HEADROOM = 32 << 20
_EXPENDABLE = {"interpreter": b"500", "copy": b"1000"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The limits of one session, as far as they are fixed when the session is made."""

    disk: int
    processes: int
    open_files: int
    memory: int
    memory_is_per_process: bool
    own_groups: bool
    host_folder: str | None
    program: bytes
    """The seccomp filter, built once by the zygote."""
    pending_signals: int = layout.PENDING_SIGNALS
    inotify: tuple[int, int] = (0, 0)
    """Instances and watches, where the session has a user namespace that can count its own."""
    in_gvisor: bool = False
    uid: int | None = None
    """Whom the user's processes are to be, where pid 1 is root of a kernel that is not the host's.
    None: the same as pid 1."""


def seal(shape: Shape) -> int:
    """Close the chamber around this process; return the Landlock ABI in force (0: none)."""
    kernel.unshare(kernel.CLONE_NEWCGROUP)
    os.setresgid(layout.UID, layout.UID, layout.UID)
    if shape.own_groups:
        os.setgroups([])
    os.setresuid(layout.UID, layout.UID, layout.UID)
    kernel.die_with_parent()
    os.umask(0o022)
    _mount_root(shape)
    socket.sethostname(layout.HOSTNAME)
    set_limits(shape)
    kernel.set_dumpable(False)
    kernel.drop_capabilities()
    kernel.forbid_new_privileges()
    # /proc and /dev: what may not be written there is mounted read-only already.
    abi = landlock.restrict(read=["/"], write=[*layout.WRITABLE.values(), "/proc", "/dev"])
    seccomp.install(shape.program)
    os.chdir(layout.WORKSPACE)
    return abi


def _mount_root(shape: Shape) -> None:
    root = layout.TEMPLATE
    # A mount that came from another user namespace is locked in place; its copy is not.
    kernel.bind(root, root)
    # /dev/shm is the mount point of the disk until its parts are bound where they belong.
    disk = f"{root}/dev/shm"
    options = f"size={shape.disk},nr_inodes={layout.inodes_of(shape.disk)},mode=755"
    kernel.mount("none", disk, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for name in layout.WRITABLE:
        os.mkdir(f"{disk}/{name}", 0o700)
        if name in ("tmp", "shm"):
            os.chmod(f"{disk}/{name}", 0o1777)
    for name, target in layout.WRITABLE.items():
        if name == "workspace" and shape.host_folder is not None:
            kernel.bind(f"{layout.HOST_FOLDERS}/{shape.host_folder}", root + target)
            kernel.mount_attributes(
                root + target, kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
            )
        else:
            # The last one, shm, covers the disk itself.
            kernel.bind(f"{disk}/{name}", root + target)
    kernel.mount("proc", f"{root}/proc", "proc", _NO_PROGRAMS)
    _limit_inotify(f"{root}/proc/sys/user", shape)
    _mask_proc(f"{root}/proc")
    kernel.enter_root(root)


def _limit_inotify(limits: str, shape: Shape) -> None:
    """Bound what the kernel counts against whoever made this user namespace, too.

    No rlimit does. Who has no capability in the namespace can't take it back.
    """
    for name, most in zip(("instances", "watches"), shape.inotify, strict=True):
        file = os.open(f"{limits}/max_inotify_{name}", os.O_WRONLY | os.O_CLOEXEC)
        os.write(file, b"%d" % most)
        os.close(file)


def _mask_proc(proc: str) -> None:
    for name in _FIXED:
        path = f"{proc}/{name}"
        if os.path.exists(path):
            kernel.bind(path, path)
            kernel.mount_attributes(path, _READ_ONLY)
    for name in _MASKED:
        if os.path.exists(f"{proc}/{name}"):
            kernel.bind(f"{layout.TEMPLATE}/dev/null", f"{proc}/{name}")
    for name in _MASKED_FOLDERS:
        if os.path.isdir(f"{proc}/{name}"):
            flags = _NO_PROGRAMS | kernel.MS_RDONLY
            kernel.mount("none", f"{proc}/{name}", "tmpfs", flags, "size=4k,mode=555")


def set_limits(shape: Shape) -> None:
    """Set the limits that the kernel keeps for each process or for the uid."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_NOFILE: shape.open_files,
        # Twice the disk: what is really written meets the end of the disk first.
        resource.RLIMIT_FSIZE: resource.RLIM_INFINITY if shape.host_folder else 2 * shape.disk,
        resource.RLIMIT_NPROC: shape.processes + layout.OWN_PROCESSES,
        resource.RLIMIT_SIGPENDING: shape.pending_signals,
    }
    for which, value in limits.items():
        _lower(shape, which, value)


def _lower(shape: Shape, which: int, value: int) -> None:
    """Set a limit for good."""
    try:
        resource.setrlimit(which, (value, value))
    except ValueError:
        if not shape.in_gvisor:  # which has some that can't be set, and does not keep them either
            raise


def limit_memory(shape: Shape) -> None:
    """Bound what this process may allocate beyond what it was born with.

    A single allocation that is too large then fails as MemoryError, which costs nothing, where
    the kernel's out-of-memory killer would cost the interpreter, and in gVisor the whole sandbox.
    RLIMIT_AS is the worse choice: mapped files and reservations that are never touched count
    there. But gVisor keeps RLIMIT_DATA for the heap alone.
    """
    file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    pages = os.read(file, 200).split()
    os.close(file)
    # One place less than pid 1 has: it can always start a file server or a new interpreter.
    _lower(shape, resource.RLIMIT_NPROC, shape.processes + 1)
    # Where a cgroup is the wall, stay a little inside it: pages of the zygote that are written
    # to count there, and not here.
    room = 0 if shape.memory_is_per_process else max(MEMORY_HEADROOM, shape.memory >> 4)
    more = max(shape.memory - room, shape.memory >> 1)
    which, at = (resource.RLIMIT_AS, 0) if shape.in_gvisor else (resource.RLIMIT_DATA, 5)
    limit = int(pages[at]) * resource.getpagesize() + more
    resource.setrlimit(which, (limit, limit))


def insist_on_another_kernel(host: list[str]) -> None:
    """Be root of no kernel that is the host's, whatever calls itself runsc there.

    Raises:
        PermissionError: it is the same.
    """
    own = os.uname()
    if [own.release, own.version] == host:
        raise PermissionError("what is called runsc here is not gVisor: it has the host's kernel")


def become_user(shape: Shape) -> None:
    """In a child of pid 1: be someone who can do nothing to pid 1, for good.

    Raises:
        PermissionError: some capability is left.
    """
    if shape.uid is None:
        return
    os.setgroups([])
    os.setresgid(shape.uid, shape.uid, shape.uid)
    os.setresuid(shape.uid, shape.uid, shape.uid)
    kernel.drop_capabilities()
    with open("/proc/self/status", encoding="utf-8") as file:
        sets = [line.split() for line in file if line.startswith("Cap")]
    left = [name for name, held in sets if int(held, 16)]
    if left:
        raise PermissionError(f"capabilities can't be given up: {left}")
    os.chdir(layout.WORKSPACE)


def make_expendable(part: str) -> None:
    """Tell the kernel whom to kill first when memory runs out: the copy, then the interpreter."""
    file = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(file, _EXPENDABLE[part])
    os.close(file)
