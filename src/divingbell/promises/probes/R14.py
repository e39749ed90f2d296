# mypy: ignore-errors
import contextlib
import signal
import time

for number in range(1, 32):
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
while True:
    try:
        time.sleep(1)
    except BaseException:
        continue
