# mypy: ignore-errors
import os

from preamble import IN_GVISOR, refused

refused("pidfd_getfd", -1, 0, 0)
if not IN_GVISOR:  # which has no pidfd_open
    refused("pidfd_getfd", os.pidfd_open(1), 3, 0)
