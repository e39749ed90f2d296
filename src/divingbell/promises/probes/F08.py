# mypy: ignore-errors
import os
import sys

from preamble import denied

for number, path in enumerate(("/etc/passwd", sys.executable, "/proc/self/status", "/dev/null")):
    denied(lambda path=path, number=number: os.link(path, f"/workspace/hard-{number}"), path)
