# mypy: ignore-errors
# Run as a command: can it look into the process that serves it?
import os

from preamble import denied

for name in ("mem", "environ", "maps"):
    denied(lambda name=name: os.open(f"/proc/{os.getppid()}/{name}", os.O_RDONLY), name)
# Their numbers can be listed where sessions have the uid of an ordinary user; what they are can't.
held = f"/proc/{os.getppid()}/fd"
denied(lambda: [os.readlink(f"{held}/{name}") for name in os.listdir(held)], "descriptors")
