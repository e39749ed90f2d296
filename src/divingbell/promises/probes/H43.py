# mypy: ignore-errors
# Marks that stand for nothing down the pipe, and frames without end beside them.
import gc
import os
import signal
import time

from preamble import frame, tether

mark = next(each for each in gc.get_objects() if type(each).__name__ == "Outlet")._mark
child = os.fork()
if child == 0:
    noise = (mark + b"\xff\xff\xff\xff") * 3000
    while True:
        os.write(1, noise)
line = tether()
packed = frame(b'{"event":"x"}', b"x" * (1 << 20))
ends = time.monotonic() + 3
try:
    while time.monotonic() < ends:
        line.sendall(packed)
finally:
    os.kill(child, signal.SIGKILL)
