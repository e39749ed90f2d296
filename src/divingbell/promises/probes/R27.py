# mypy: ignore-errors
import os
import resource

from preamble import call, denied, judge, libc

for name in ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_CORE"):
    which = getattr(resource, name)
    _, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        continue  # where a control group counts, or a folder of the host is the workspace

    def lift(which: int = which, hard: int = hard) -> None:
        try:
            resource.setrlimit(which, (hard + 4096, hard + 4096))
        except ValueError as error:
            raise PermissionError(1, str(error)) from None

    denied(lift, name)
denied(lambda: os.nice(-1), "nice")
denied(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), "setpriority")
for policy, name in ((os.SCHED_FIFO, "FIFO"), (os.SCHED_RR, "RR")):
    denied(lambda p=policy: os.sched_setscheduler(0, p, os.sched_param(10)), name)
judge(call("mlockall", 3)[0] == 0, "mlockall:")
judge(libc.mlock(bytes(1 << 20), 1 << 20) == 0, "mlock:")
