# mypy: ignore-errors
# Run as a command: can it look into the process that serves it?
import os

from preamble import denied

for name in ("mem", "environ", "maps"):
    denied(lambda name=name: os.open(f"/proc/{os.getppid()}/{name}", os.O_RDONLY), name)
denied(lambda: os.listdir(f"/proc/{os.getppid()}/fd"), "descriptors")
