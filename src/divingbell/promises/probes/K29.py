# mypy: ignore-errors
from preamble import IN_GVISOR, judge, libc

with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
wanted = {"Seccomp": 2, "NoNewPrivs": 1, "CapEff": 0, "CapPrm": 0, "CapInh": 0}
wanted |= {"CapBnd": 0, "CapAmb": 0, "TracerPid": 0}
PR_GET_NO_NEW_PRIVS = 39
if IN_GVISOR:  # which leaves the first line out, and knows no ambient capabilities
    status.setdefault("NoNewPrivs", str(libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)))
    status.setdefault("CapAmb", "0")
found = {name: status[name] for name, value in wanted.items() if int(status[name], 16) != value}
judge(found, "status:")
