# mypy: ignore-errors
import os

from preamble import denied, judge

for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
    denied(lambda name=name: os.open(f"/proc/1/ns/{name}", os.O_RDONLY), f"/proc/1/ns/{name}")
with open("/proc/self/cgroup") as file:
    judge([line for line in file if not line.rstrip().endswith(":/")], "control groups shown:")
