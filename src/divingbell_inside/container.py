"""The way in for containers: pid 1 of a container connects to the host and becomes its supervisor.

Run as `python -I container.py`. The walls stand already: whoever made the container has built
them. The one line out is a unix socket in a folder of its own; the first message on it is a
token that works once. Both are gone before anything of the profile is imported.
"""

import contextlib
import ctypes
import gc
import glob
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, "/opt/divingbell")

from divingbell_inside import (
    chamber,
    commands,
    files,
    kernel,
    landlock,
    layout,
    preparation,
    runner,
    seccomp,
    supervisor,
)

MAX_MESSAGE = 1 << 16
RESTORE_PAUSE, RESTORE_PAUSES = 0.01, 6000
_HIDDEN = ("/proc/1", "/dev/pts")
_USELESS = ("/dev/ptmx", "/dev/fuse", "/dev/net/tun")
_SUPERVISING = (kernel.CAP_KILL, kernel.CAP_SETGID, kernel.CAP_SETUID)
"""What pid 1 keeps where it is root of gVisor: it starts and ends processes of someone else."""


def take_token(name: str = layout.TOKEN) -> bytes:
    """Return the token, and wipe it out of the environment, also as the kernel shows it.

    Raises:
        KeyError: there is none.
    """
    token = os.environb[name.encode()]
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    # The block that /proc/<pid>/environ shows: every process that is forked later has it too.
    address = libc.getenv(name.encode())
    del os.environ[name]
    entry = len(name) + 1
    ctypes.memset(address - entry, 0, entry + len(token))
    return token


def wait_to_be_restored() -> bytes:
    """Wait for the token that the host puts beside its socket, and return it.

    It comes once this process was saved and restored, and runs on as a session. The pauses are
    counted because the clock leaps, by all the time that we were not running.
    """
    for _ in range(RESTORE_PAUSES):
        with contextlib.suppress(FileNotFoundError), open(layout.TOKEN_FILE, "rb") as file:
            return file.read()
        time.sleep(RESTORE_PAUSE)
    raise SystemExit(1)  # the host is gone, and there is no line that could tell us


def connect(token: bytes) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(layout.SOCKET)
    line.send(token)
    return line


def seal(shape: chamber.Shape) -> int:
    """Add what a process can do for itself to the walls of the container."""
    os.umask(0o022)
    chamber.set_limits(shape)
    kernel.set_dumpable(False)
    if shape.uid is None:
        kernel.drop_capabilities()
        os.chdir(layout.WORKSPACE)
    else:
        _hide()
        kernel.drop_capabilities(kept=_SUPERVISING)
    kernel.forbid_new_privileges()
    abi = landlock.restrict(read=["/"], write=[*layout.WRITABLE.values(), "/proc", "/dev"])
    # On top of the one that the container has, if it has one: gVisor leaves that out, and the
    # library that made it compares all 64 bits of an argument where the kernel reads 32.
    seccomp.install(shape.program)
    return abi


def _hide() -> None:
    """Take away what gVisor shows to everyone: all about pid 1, and devices that nobody needs."""
    flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    for folder in _HIDDEN:
        kernel.mount("none", folder, "tmpfs", flags, "size=4k,mode=555")
    for device in _USELESS:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(device)


@contextlib.contextmanager
def _acting_as(uid: int | None) -> Iterator[None]:
    """Make files as the user does, for whom they are; then be root again."""
    if uid is None:
        yield
        return
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    yield
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)


def _lay_out_fonts() -> None:
    """Put the profile's list of fonts where matplotlib looks: making it takes a quarter second."""
    folder = layout.ENVIRONMENT["MPLCONFIGDIR"]
    os.makedirs(folder, exist_ok=True)
    for path in glob.glob(f"{layout.PROFILE}/cache/matplotlib/*.json"):
        shutil.copy(path, folder)


def _set_login() -> None:
    """Set the uid that an audit names, which can be done once: not by the user's code, then."""
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/loginuid", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, str(os.getuid()).encode())
        finally:
            os.close(file)


def _shape(settings: dict[str, Any]) -> chamber.Shape:
    # In gVisor no limit on a process counts it, and at the limit of all the sandbox ends.
    denied = seccomp.UNCOUNTED_MEMORY if settings["in_gvisor"] else frozenset[str]()
    return chamber.Shape(
        disk=settings["disk"],
        processes=settings["processes"],
        open_files=settings["open_files"],
        memory=settings["memory"],
        memory_is_per_process=False,
        own_groups=False,
        host_folder=None,
        program=seccomp.build(kernel.MACHINE, deny=denied),
        in_gvisor=settings["in_gvisor"],
        uid=settings["uid"],
    )


def main() -> None:
    gc.disable()  # imports make no garbage; the interpreter that is forked enables it again
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _set_login()
    kernel.set_dumpable(False)
    line = connect(take_token())
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):  # they lead to whoever made the container
        os.dup2(null, descriptor)
    os.close(null)
    try:
        settings = json.loads(line.recv(MAX_MESSAGE))
        if settings["uid"] is not None:
            chamber.insist_on_another_kernel(settings["host_kernel"])
        with _acting_as(settings["uid"]):
            _lay_out_fonts()
            missing = preparation.load(settings["preload"], warm=settings["to_be_saved"])
        preparation.freeze()
        about = json.dumps({"missing": missing}).encode()
        line.send(about)
        if settings["to_be_saved"]:
            line.close()
            line = connect(wait_to_be_restored())
            settings = json.loads(line.recv(MAX_MESSAGE))
            line.send(about)
        shape = _shape(settings)
        parts = (seal, runner.main, files.serve, commands.serve)
        supervisor.Supervisor(line, shape, parts).serve()
    except Exception as error:  # the host must learn why, and there is no one else to tell
        line.send(f"failed {type(error).__name__}: {error}".encode()[:400])
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
