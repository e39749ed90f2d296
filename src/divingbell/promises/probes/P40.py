# mypy: ignore-errors
import os

from preamble import denied

denied(lambda: os.open("/proc/1/mem", os.O_RDWR), "/proc/1/mem")
denied(lambda: os.open("/proc/1/mem", os.O_WRONLY), "/proc/1/mem (write)")
for name in ("fd", "fdinfo", "task/1/fd", "map_files"):
    denied(lambda name=name: os.listdir(f"/proc/1/{name}"), f"/proc/1/{name}")
for name in ("maps", "environ", "auxv", "syscall", "stack"):
    path = f"/proc/1/{name}"
    denied(lambda path=path: os.read(os.open(path, os.O_RDONLY), 10), path)
for name in ("root", "cwd", "exe", "ns/user", "ns/mnt", "ns/net"):
    denied(lambda name=name: os.readlink(f"/proc/1/{name}"), f"/proc/1/{name}")
for name in ("oom_score_adj", "clear_refs", "uid_map", "sched", "comm"):
    denied(lambda name=name: os.open(f"/proc/1/{name}", os.O_WRONLY), f"/proc/1/{name}")
