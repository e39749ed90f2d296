# mypy: ignore-errors
# Stop the file server that keeps the rest of the output, in the middle of its work.
import contextlib
import os
import signal
import time

mine = os.getpid()
child = os.fork()
if child == 0:
    while os.getppid() == mine:
        os.write(1, b"x" * 65536)
    os._exit(0)
ends = time.monotonic() + 20
try:
    while time.monotonic() < ends:
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, mine, child):
                with contextlib.suppress(OSError):  # not ours yet, or gone by now
                    os.kill(int(name), signal.SIGSTOP)
        time.sleep(0.05)
finally:
    os.kill(child, signal.SIGKILL)  # it would go on to print in the next cell
