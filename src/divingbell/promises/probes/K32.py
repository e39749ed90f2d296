# mypy: ignore-errors
import os

from preamble import judge, pids

seen = set(pids())
found = []
for pid in range(2, 40000):
    if pid in seen:
        continue
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        continue
    except PermissionError:
        pass
    if pid not in pids():
        found.append(pid)
judge(found[:20], "processes beyond our own that can be signalled:")
