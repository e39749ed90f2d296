# mypy: ignore-errors
import contextlib
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(256):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        time.sleep(300)
    os._exit(0)
os.wait()
print("daemonised")
