# mypy: ignore-errors
# The cell ends well, and leaves two processes behind that flood socket and pipe.
import gc
import os

from preamble import frame, tether

mark = next(each for each in gc.get_objects() if type(each).__name__ == "Outlet")._mark
line = tether()
if os.fork() == 0:
    packed = frame(b"{}") * 1000
    while True:
        line.sendall(packed)
if os.fork() == 0:
    noise = (mark + b"\xff\xff\xff\xff") * 3000
    while True:
        os.write(1, noise)
