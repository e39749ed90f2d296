# mypy: ignore-errors
import os

from preamble import judge, pids

own = os.stat("/")
found = []
for pid in pids():
    for name in ("root", "cwd"):
        try:
            other = os.stat(f"/proc/{pid}/{name}/")
            above = os.stat(f"/proc/{pid}/{name}/../../../..")
        except OSError:
            continue
        if other.st_dev != own.st_dev and not os.path.realpath(f"/proc/{pid}/{name}").startswith(
            ("/workspace", "/proc", "/tmp", "/home")
        ):
            found.append((pid, name))
        if (above.st_dev, above.st_ino) != (own.st_dev, own.st_ino):
            found.append((pid, name, "above"))
judge(found, "ways out by /proc/*/root:")
judge(os.path.exists("/proc/1/root/etc/shadow"), "shadow below /proc/1/root")
