# mypy: ignore-errors
# Fill the pipe so that the host stops reading it, then frames without number beside it.
import os
import signal
import time

from preamble import frame, pids, tether

mine = os.getpid()
before = set(pids())
child = os.fork()
if child == 0:
    while True:
        os.write(1, b"x" * 65536)
line = tether()
packed = frame(b'{"event":"x"}', b"x" * (1 << 20))
ends = time.monotonic() + 3
try:
    while time.monotonic() < ends:
        for pid in set(pids()) - before - {child}:
            os.kill(pid, signal.SIGSTOP)
        line.sendall(packed)
finally:
    os.kill(child, signal.SIGKILL)
