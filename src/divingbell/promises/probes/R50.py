# mypy: ignore-errors
import contextlib
import os
import signal
import time

if os.fork() == 0:  # so that there is someone to stop
    time.sleep(100)
for number in (signal.SIGSTOP, signal.SIGTSTP):
    os.kill(-1, number)
    with contextlib.suppress(PermissionError):  # where it is someone else's process
        os.kill(1, number)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(100)
