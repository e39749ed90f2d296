# mypy: ignore-errors
import os

from preamble import refused

refused("pidfd_getfd", -1, 0, 0)
try:
    supervisor = os.pidfd_open(1)
except OSError:
    supervisor = -1  # a kernel without, as gVisor's
refused("pidfd_getfd", supervisor, 3, 0)
