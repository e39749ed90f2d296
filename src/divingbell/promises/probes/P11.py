# mypy: ignore-errors
# Everything in which a careless sandbox shows its host; the host looks for its secret in it.
import os
import socket
import sys

shown = [socket.gethostname(), repr(sys.argv), repr(dict(os.environ)), repr(sys.path)]
for name in ("self", "1", *filter(str.isdigit, os.listdir("/proc"))):
    for part in ("mountinfo", "mounts", "cmdline", "environ", "cgroup", "maps", "comm"):
        try:
            with open(f"/proc/{name}/{part}", "rb") as file:
                shown.append(file.read().decode("utf-8", "replace"))
        except OSError:
            continue
# The secret comes turned round, so that it is in this memory only if it was there before.
needle = TURNED.encode()  # noqa: F821  (given by the host)
hits = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps:
        span, rights, *rest = line.split()
        if not rights.startswith("rw") or "[v" in line:
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        for at in range(start, end, 1 << 22):
            try:
                memory.seek(at)
                piece = memory.read(min(1 << 22, end - at))
            except (OSError, ValueError):
                continue
            hits += piece[::-1].count(needle)
print(f"HITS={hits}")
print(f"FILE={os.path.exists(SECRET_FILE[::-1])}")  # noqa: F821
print("\n".join(shown))
