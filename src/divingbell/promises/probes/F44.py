# mypy: ignore-errors
import os
import stat
import subprocess

from preamble import IN_GVISOR, judge

PROGRAMS = ("/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local/bin", "/usr/lib/openssh")
before = os.getresuid() + os.getresgid()
for program in ("sudo", "su", "passwd", "newgrp", "mount", "pkexec", "newuidmap", "chsh"):
    if os.path.exists(path := f"/usr/bin/{program}"):
        subprocess.run([path, "--help"], stdin=subprocess.DEVNULL, capture_output=True, timeout=5)


def heeded(path: str) -> bool:
    mode = os.lstat(path).st_mode
    marked = stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)
    return bool(marked) and not os.statvfs(path).f_flag & os.ST_NOSUID


with open("/proc/self/mountinfo") as file:
    heeding = [fields[4] for line in file if "nosuid" not in (fields := line.split())[5]]
paths = [f"{top}/{name}" for top in PROGRAMS if os.path.isdir(top) for name in os.listdir(top)]
judge(len(paths) < 50, f"{len(paths)} programs")
judge(heeding and [path for path in paths if heeded(path)], "setuid or setgid, and heeded:")
if not IN_GVISOR:  # its mounts never say nosuid
    writable = {"/workspace", "/tmp", "/dev/shm", "/home/diver"}
    judge(writable & {*heeding}, "writable, and heeding it:")
judge(os.getresuid() + os.getresgid() != before, f"uids {before}")
answer = subprocess.run(
    ["/bin/sh", "-c", "cat /proc/self/status"], capture_output=True, text=True
).stdout
judge("CapEff:\t0000000000000000" not in answer, "capabilities of a program that was run:")
