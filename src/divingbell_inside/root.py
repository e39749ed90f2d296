"""First stage of a zygote: build the read-only root, move into it, become the zygote.

Run on the host as `python -I -S root.py FD`, where FD is a socket to the host. It enters
namespaces of its own (user, mounts, network, IPC) before anything of a profile is imported, so
that what is imported later only ever sees the sealed root. Sources are opened before the uid
changes (a profile may lie in a folder that only root may enter) and mounted through those
descriptors.
"""

import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from divingbell_inside import kernel, layout

MAX_PLAN = 1 << 17
READ_ONLY = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
SCRATCH = "/tmp"


class Plan:
    """The folders that the host wants to be seen inside, with every source already open."""

    def __init__(self, raw: dict[str, object]) -> None:
        binds = raw["binds"]
        links = raw["links"]
        hidden = raw["hidden"]
        host_folders = raw["host_folders"]
        assert isinstance(binds, list) and isinstance(links, list) and isinstance(hidden, list)
        self.links: list[tuple[str, str]] = [(str(at), str(to)) for at, to in links]
        self.hidden = [str(path) for path in hidden]
        self.binds = [(_open(str(source)), str(target)) for source, target in binds]
        # A shared mapping of /dev/zero is memory that no limit on a process counts.
        hidden_devices = {"zero"} if raw["memory_is_per_process"] else set()
        names = [name for name in layout.DEVICES if name not in hidden_devices]
        self.devices = [(_open(f"/dev/{name}"), f"/dev/{name}") for name in names]
        self.host_folders = _open(str(host_folders)) if host_folders else None


def _open(path: str) -> str:
    return f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"


def _bind(source: str, target: str) -> None:
    """Bind a folder or a file, making what it is mounted on."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    kernel.bind(source, target)


def _build(root: str, plan: Plan) -> None:
    """Fill `root`, a fresh tmpfs, with everything but /proc."""
    for name in ("proc", "dev", "etc", "tmp", "root", *layout.WRITABLE.values()):
        os.makedirs(os.path.join(root, name.lstrip("/")), exist_ok=True)
    for name, text in layout.ETC.items():
        with open(f"{root}/etc/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for at, to in plan.links:
        os.makedirs(os.path.dirname(root + at), exist_ok=True)
        os.symlink(to, root + at)
    for name in ("fd", "stdin", "stdout", "stderr"):
        number = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}[name]
        os.symlink(f"/proc/self/fd{number}", f"{root}/dev/{name}")
    for source, target in plan.devices:
        _bind(source, root + target)
    for source, target in plan.binds:
        _bind(source, root + target)
        kernel.mount_attributes(root + target, READ_ONLY)
    for path in plan.hidden:
        if os.path.isdir(root + path):
            kernel.mount("none", root + path, "tmpfs", _TMPFS, "size=4k,mode=755")


_TMPFS = kernel.MS_NOSUID | kernel.MS_NODEV


def _give_namespaces_to(owner: int) -> None:
    try:
        kernel.own_namespaces_as(owner)
    except OSError as error:
        raise SystemExit(
            f"the uid {owner} can't be taken on here ({error.strerror}); "
            "inside a container set uid_base to uids that it has"
        ) from None


def main(descriptor: int) -> None:
    line = socket.socket(fileno=descriptor)
    raw = json.loads(line.recv(MAX_PLAN))
    if raw["owner"] is not None:
        _give_namespaces_to(raw["owner"])
    kernel.die_with_parent()
    # The zygote imports packages, and .pth files run when it starts: it has no network either.
    kernel.unshare(
        kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    )
    line.send(b"unshared")
    if line.recv(16) != b"mapped":  # the host writes uid_map and gid_map
        raise SystemExit("the host went away")
    plan = Plan(raw)
    os.setresgid(0, 0, 0)
    if raw["own_groups"]:
        os.setgroups([])
    os.setresuid(0, 0, 0)
    kernel.die_with_parent()  # setresuid has cleared it
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("none", SCRATCH, "tmpfs", _TMPFS, "size=64m,mode=755")
    template = SCRATCH + layout.TEMPLATE
    os.makedirs(template)
    kernel.mount("none", template, "tmpfs", _TMPFS, "size=16m,mode=755")
    _build(template, plan)
    kernel.mount_attributes(template, kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID)
    _build(SCRATCH, plan)
    if plan.host_folders:
        _bind(plan.host_folders, SCRATCH + layout.HOST_FOLDERS)
    # Sessions may only mount a /proc of their own where one is fully visible already.
    kernel.bind("/proc", f"{SCRATCH}/proc")
    kernel.enter_root(SCRATCH)
    os.set_inheritable(descriptor, True)
    python = f"{layout.PROFILE}/bin/python"
    script = f"{layout.INSIDE}/divingbell_inside/zygote.py"
    os.execve(python, [python, "-I", script, str(descriptor)], layout.ENVIRONMENT)


if __name__ == "__main__":
    main(int(sys.argv[1]))
