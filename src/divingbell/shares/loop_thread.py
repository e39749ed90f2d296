"""The thread of the event loop: it goes on as soon as there is something for it to do.

All sessions wait for it, and each time it works for a moment only. It may have to wait for a worker
(see `workers`) that holds the interpreter, so those go first as well.
"""

import ctypes
import os
import platform
import sys

from divingbell import logs

log = logs.logger("divingbell")

HAND_OVER = 0.0005
"""Seconds after which another thread of this process lets it have the interpreter. Python's own
5 ms are ten times what a small cell takes."""
SLICE = 100_000
"""Nanoseconds that it asks the kernel for at a time: who wants the processor for less comes first.
Measured: else it waits for up to 4 ms, a tick of the kernel, behind a session that is busy."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_RESET_ON_FORK = 1


class _Attributes(ctypes.Structure):
    """What `sched_setattr` takes."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def hand_over_soon() -> None:
    """Have all threads of this process let others have the interpreter soon.

    For a process that is ours: in a program of somebody else's it is for that to decide.
    """
    if sys.getswitchinterval() > HAND_OVER:
        sys.setswitchinterval(HAND_OVER)


def go_first() -> None:
    """Have the thread that calls this go first among those of the machine.

    It gets no more of the processor than before, only sooner. Threads and processes that it starts
    are as all others are.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    wanted = _Attributes(
        size=ctypes.sizeof(_Attributes),
        flags=_RESET_ON_FORK,
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        runtime=SLICE,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(number), 0, ctypes.byref(wanted), 0) != 0:
        # Kernels before 6.12 take it and do nothing; a container may forbid the call.
        log.debug("no shorter time slice: %s", os.strerror(ctypes.get_errno()))
