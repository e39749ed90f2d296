# mypy: ignore-errors
# Marks that stand for nothing down the pipe, and tiny frames beside them, without end.
import gc
import os
import signal

from preamble import frame, tether

mark = next(each for each in gc.get_objects() if type(each).__name__ == "Outlet")._mark
child = os.fork()
if child == 0:
    noise = b"".join(b"x" + mark + number.to_bytes(4, "big") for number in range(3000))
    while True:
        os.write(1, noise)
line = tether()
packed = frame(b"{}") * 1000
try:
    while True:
        line.sendall(packed)
finally:
    os.kill(child, signal.SIGKILL)
