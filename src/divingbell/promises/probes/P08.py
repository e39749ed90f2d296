# mypy: ignore-errors
import os
import sys

from preamble import denied

for path in ("/proc/self/exe", "/proc/1/exe", sys.executable, os.path.realpath(sys.executable)):
    denied(lambda path=path: os.open(path, os.O_WRONLY), path)
    denied(lambda path=path: os.open(path, os.O_RDWR | os.O_TRUNC), f"{path} (truncate)")
