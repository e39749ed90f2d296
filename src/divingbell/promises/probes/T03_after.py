# mypy: ignore-errors
# A daemon keeps the line and goes on calling when the session is over.
import os
import time

from preamble import frame, tether

line = tether()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1 << 41, 1 << 42):
            head = b'{"event":"call","id":%d,"name":"hostile.count"}' % number
            try:
                line.sendall(frame(head, b'{"name": "left behind"}'))
            except OSError:
                break
            time.sleep(0.02)
    os._exit(0)
time.sleep(0.2)
