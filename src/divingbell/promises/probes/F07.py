# mypy: ignore-errors
import os
import time

os.makedirs("d", exist_ok=True)
with open("d/passwd", "w") as file:
    file.write("inside")
os.symlink("/etc", "l")
ends = time.monotonic() + SECONDS  # noqa: F821  (given by the host)
while time.monotonic() < ends:
    for _ in range(2):
        os.rename("d", "t")
        os.rename("l", "d")
        os.rename("t", "l")
