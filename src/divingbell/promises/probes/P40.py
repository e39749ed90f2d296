# mypy: ignore-errors
import contextlib
import os

from preamble import denied, opens

denied(lambda: os.open("/proc/1/mem", os.O_RDWR), "/proc/1/mem")
denied(lambda: os.open("/proc/1/mem", os.O_WRONLY), "/proc/1/mem (write)")
denied(lambda: os.listdir("/proc/1/map_files"), "/proc/1/map_files")


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(10)


for name in ("maps", "smaps", "environ", "auxv", "syscall", "stack"):
    denied(lambda name=name: read(f"/proc/1/{name}"), f"/proc/1/{name}")
for name in ("root", "cwd", "exe", "ns/user", "ns/mnt", "ns/net"):
    denied(lambda name=name: os.readlink(f"/proc/1/{name}"), f"/proc/1/{name}")
# Where one uid is all there is, the numbers can be listed. What they stand for can't be had.
numbers = set(range(64))
with contextlib.suppress(OSError):
    numbers |= {int(name) for name in os.listdir("/proc/1/fd")}
for number in sorted(numbers):
    path = f"/proc/1/fd/{number}"
    if os.path.lexists(path) or number < 4:
        denied(lambda path=path: os.readlink(path), path)
        denied(lambda path=path: os.open(path, os.O_RDWR), path)
        denied(lambda path=path: opens(path, os.O_RDONLY) or os.stat(path), path)
