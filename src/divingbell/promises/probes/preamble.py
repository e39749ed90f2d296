# mypy: ignore-errors
"""What the probes share. It lies beside them, in the sandbox as on the host.

A probe judges itself: it prints lines that start with SAFE or UNSAFE. One UNSAFE decides, and a
probe that prints neither is broken. Standard library only, because it runs inside.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable

sys.path.append("/opt/divingbell")
from divingbell_inside.syscalls import NUMBERS

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MACHINE = platform.machine()
HERE = NUMBERS[MACHINE]
IN_GVISOR = os.path.exists("/proc/sentry-meminfo")
REFUSED = (errno.EPERM, errno.ENOSYS)


def safe(words: object = "") -> None:
    print("SAFE", str(words)[:300], flush=True)


def unsafe(words: object = "") -> None:
    print("UNSAFE", str(words)[:300], flush=True)


def judge(found: object, words: object = "") -> None:
    """Unsafe if anything was found."""
    if found:
        unsafe(f"{words} {found!r}")
    else:
        safe(words)


def denied(action: Callable[[], object], words: str = "") -> None:
    """Safe if the action is refused by the system (not if it fails for its own stupidity)."""
    try:
        answer = action()
    except OSError as error:
        safe(f"{words} {errno.errorcode.get(error.errno or 0, error)}")
    else:
        unsafe(f"{words} -> {answer!r}")


def call(name: str, *arguments: int | bytes | None) -> tuple[int, int]:
    """Make a system call; return its answer and errno."""
    return raw_call(HERE[name], *arguments)


def raw_call(number: int, *arguments: int | bytes | None) -> tuple[int, int]:
    ctypes.set_errno(0)
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer = libc.syscall(ctypes.c_long(number), *converted)
    return answer, ctypes.get_errno()


def refused(name: str, *arguments: int | bytes | None) -> None:
    """Safe if the filter refuses the call. Any other error means that it reached the kernel."""
    if name not in HERE:
        safe(f"{name}: not on {MACHINE}")
        return
    answer, number = call(name, *(arguments or (-1, 0, 0, 0, 0, 0)))
    if answer >= 0:
        unsafe(f"{name} returned {answer}")
    elif number in REFUSED:
        safe(f"{name} {errno.errorcode[number]}")
    else:
        unsafe(f"{name} reached the kernel: {errno.errorcode.get(number, number)}")


def in_child(action: Callable[[], object], seconds: float = 5.0) -> tuple[str, int]:
    """Run an action in a forked child; return how it ended ("exit" or "signal") and the number."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(seconds))
        status = 99
        try:
            status = int(action() or 0)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "signal", os.WTERMSIG(status)
    return "exit", os.WEXITSTATUS(status)


def take(action: Callable[[], bool], most: int) -> None:
    """Do it until it is refused, `most` times at most. Unsafe if there was nothing left to take."""
    taken = 0
    with contextlib.suppress(OSError):
        while taken < most and action():
            taken += 1
    judge(not taken, f"{taken} taken")


def opens(path: str, flags: int) -> bool:
    """Whether a path can be opened; nothing is ever written."""
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def sockets(kind: int) -> list[socket.socket]:
    """The sockets of this type that the process holds: how user code finds the tether."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            candidate = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        if candidate.type == kind:
            found.append(candidate)
    return found


def tether() -> socket.socket:
    """The data line to the host."""
    return sockets(socket.SOCK_STREAM)[0]


def cradle() -> socket.socket:
    """The line to the supervisor, on which copies announce themselves."""
    return sockets(socket.SOCK_SEQPACKET)[0]


def frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("!II", len(header), len(body)) + header + body


def machine_code(code: bytes, *arguments: int) -> int:
    """Run instructions of our own, which no library call has to agree to."""
    import mmap

    # Private: where nothing counts shared memory, that is refused.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    page = mmap.mmap(-1, 4096, flags, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    kind = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * len(arguments))
    return kind(address)(*arguments)
