# mypy: ignore-errors
import os

from preamble import judge, pids, safe, unsafe

judge(len(pids()) > 5, f"{len(pids())} processes are visible")
(safe if os.getpid() < 1000 and os.getppid() == 1 else unsafe)(f"pid {os.getpid()}")
with open("/proc/self/status") as file:
    line = next((line for line in file if line.startswith("NSpid:")), "NSpid: gVisor-has-none")
judge(len(line.split()) != 2, "pids of an outer namespace are visible:")
