# mypy: ignore-errors
# Stop the file server that keeps the rest of the output, in the middle of its work.
import os
import signal
import time

mine = os.getpid()
child = os.fork()
if child == 0:
    while True:
        os.write(1, b"x" * 65536)
ends = time.monotonic() + 20
while time.monotonic() < ends:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, mine, child):
            os.kill(int(name), signal.SIGSTOP)
    time.sleep(0.05)
