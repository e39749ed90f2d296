# mypy: ignore-errors
import os

from preamble import refused

refused("pidfd_getfd", -1, 0, 0)
refused("pidfd_getfd", os.pidfd_open(1), 3, 0)
