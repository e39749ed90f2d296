# mypy: ignore-errors
import os
import resource

from preamble import call, denied, judge, libc

for name in ("NOFILE", "NPROC", "AS", "DATA", "FSIZE", "MEMLOCK", "CORE"):
    which = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        continue  # where a control group counts, or a folder of the host is the workspace

    def lift(which: int = which, hard: int = hard) -> None:
        try:
            resource.setrlimit(which, (hard + 4096, hard + 4096))
        except ValueError as error:
            raise PermissionError(1, str(error)) from None

    denied(lift, name)
for policy, name in ((os.SCHED_FIFO, "FIFO"), (os.SCHED_RR, "RR")):
    denied(lambda p=policy: os.sched_setscheduler(0, p, os.sched_param(10)), name)
judge(call("mlockall", 3)[0] == 0, "mlockall:")
judge(libc.mlock(bytes(1 << 20), 1 << 20) == 0, "mlock:")
