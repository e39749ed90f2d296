# mypy: ignore-errors
import os

from preamble import IN_GVISOR, judge, pids, safe, unsafe

judge(len(pids()) > 5, f"{len(pids())} processes are visible")
(safe if os.getpid() < 1000 and os.getppid() == 1 else unsafe)(f"pid {os.getpid()}")
with open("/proc/self/status") as file:
    lines = [line.split() for line in file if line.startswith("NSpid:")]
# gVisor has no such line; anywhere else it is there, with one number.
judge([len(line) for line in lines] != ([] if IN_GVISOR else [2]), "pids of an outer namespace:")
