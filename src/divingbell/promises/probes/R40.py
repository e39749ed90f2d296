# mypy: ignore-errors
import contextlib
import os
import signal

from preamble import safe

for number in range(1, signal.NSIG):
    with contextlib.suppress(OSError):
        os.kill(1, number)
with contextlib.suppress(ProcessLookupError):
    os.kill(-1, 0)
safe("pid 1 lives: someone still answers")
